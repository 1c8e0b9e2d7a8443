// Package regex has regular expressions over bytes that are matched by derivatives (Brzozowski 1964): the derivative of an expression by a byte
// matches what may follow that byte. So intersection and complement cost no more than union, counts are numbers and not copies, and states are
// made only where a text leads.
//
// Expressions are interned in a Set: those that are built alike, or equal by the simple laws, are one Ref. Text is UTF-8.
//
// # Syntax of Parse
//
// Patterns are those of ECMA-262 with the flag u, as JSON schemas use them, and what Python's re, PCRE and Rust write in the same way.
// Where these give a pattern different meanings, it is read as ECMA-262 says, or refused.
//
//	x  xy  x|y  (x)  (?:x)  (?<name>x)  (?P<name>x)      a text, one behind the other, either, groups
//	x*  x+  x?  x{m}  x{m,}  x{m,n}, each with ? behind  repetitions; lazy ones match the same texts
//	.                                                    a character but \n, \r, U+2028 and U+2029
//	[abc-e]  [^abc]                                      a character of a class, or outside of it
//	\d \D \w \W                                          0-9; A-Z, a-z, 0-9 and _
//	\s \S                                                blanks and line ends of Unicode, and U+FEFF
//	\p{L} \p{Letter} \p{Script=Greek} \p{sc=Grek} \pL \P{…}  categories, scripts, and the properties Any, ASCII, Alphabetic,
//	                                                     Lowercase, Uppercase, White_Space and the like
//	\t \n \v \f \r \0 \cA \x41 \u0041 \u{1F600} \uD83D\uDE00  characters; \ before punctuation is that character
//	^ \A  $ \z                                           the start and the end of the text, anywhere
//	\b \B                                                between a character of \w and another, or the start or end; and the opposite
//	(?=x) (?!x)                                          x follows, x does not
//	(?i) (?s) (?i:x) (?-i:x)                             letters of either case; . is any character
//
// Refused are back references, look-behind, conditions, atomic groups and possessive repetitions, (?m), (?x), POSIX classes and octal escapes.
package regex

import "math"

// Ref is an expression of a Set.
type Ref int32

// Expressions that every Set has.
const (
	Nothing  Ref = iota // matches no text
	Empty               // matches the empty text alone
	anyByte             // matches every text of one byte
	anything            // matches every text of bytes
)

// kind is how an expression is built.
type kind uint8

const (
	kindNothing kind = iota
	kindEmpty
	kindClass      // one byte of sets[lo]
	kindWords      // what is left of words[lo:hi] of list a behind their first b bytes, which they share
	kindConcat     // a, then b; a is no kindConcat
	kindUnion      // one of operands[lo:hi]; none is a union or matches only the empty text
	kindIntersect  // all of operands[lo:hi]
	kindComplement // not a
	kindRepeat     // a from lo to hi times; a does not match the empty text
	kindLoop       // what loops[lo] says, in which this expression may be
)

// Flags of an expression.
const (
	flagNullable uint8 = 1 << iota // matches the empty text
	flagAlive                      // matches some text, as one sees from how it is built
)

// Bounds of repetitions.
const (
	unbounded = math.MaxInt32
	maxCount  = 1 << 30
)

// node is an expression.
type node struct {
	kind   kind
	flags  uint8
	a, b   Ref
	lo, hi int32
}

// row has the derivatives of an expression, by classes of bytes. next is 0 where a derivative was not asked yet, else one more than it.
type row struct {
	classes *Classes
	next    []Ref
}

// Set owns expressions. It is not for concurrent use.
type Set struct {
	// Budget is how many Steps one question of Alive or Covers may take.
	Budget int

	nodes     []node
	rows      []row
	fates     []fate
	onward    []byte         // by which an expression that was found alive goes on to its text, unless it is nullable
	simple    map[node]Ref   // all but unions and intersections
	compound  map[string]Ref // unions and intersections by operands
	operands  []Ref
	classRefs map[byteSet]Ref
	sets      []byteSet
	lists     [][]string
	listsBy   map[uint64][]Ref // places in lists by hash
	literals  map[string]Ref   // short ones
	loops     []Ref
	runs      map[[2]Ref]int
	lengths   map[Ref]int
	plains    map[Ref]bool
	covered   map[[2]Ref]bool // whether what a repetition is of covers characters
	chars     map[string]Ref  // classes of characters in UTF-8
	classes   map[[256]uint8]*Classes
	pairs     map[[2]*Classes]*Classes // classes by which two have been told apart
	scratch   splitter
	free      []Ref            // for tables of derivatives
	proofs    map[[2]Ref][]Ref // by the expression that goes on and a class or words
	proving   bool
	endings   endings
	steps     int
	bytes     int
}

// defaultBudget is enough for counts of some ten thousands beside a pattern.
const defaultBudget = 1 << 21

// NewSet makes an empty set.
func NewSet() *Set {
	s := &Set{
		Budget:    defaultBudget,
		simple:    map[node]Ref{},
		compound:  map[string]Ref{},
		classRefs: map[byteSet]Ref{},
		listsBy:   map[uint64][]Ref{},
		literals:  map[string]Ref{},
		chars:     map[string]Ref{},
		classes:   map[[256]uint8]*Classes{},
		pairs:     map[[2]*Classes]*Classes{},
		proofs:    map[[2]Ref][]Ref{},
	}
	s.intern(node{kind: kindNothing, flags: flagAlive})
	s.intern(node{kind: kindEmpty, flags: flagAlive | flagNullable})
	s.Bytes(0, 255)
	s.intern(node{kind: kindRepeat, flags: flagAlive | flagNullable, a: anyByte, hi: unbounded})
	return s
}

// Size is how many expressions there are.
func (s *Set) Size() int { return len(s.nodes) }

// Memory is about how many bytes the expressions and their tables take.
func (s *Set) Memory() int { return s.bytes }

// Steps is how much work was done since the set was made: expressions looked up and operands gone through. Equal calls on equal sets take
// equal steps.
func (s *Set) Steps() int { return s.steps }

// Nullable reports whether r matches the empty text.
func (s *Set) Nullable(r Ref) bool { return s.nodes[r].flags&flagNullable != 0 }

func (s *Set) sure(r Ref) uint8 { return s.nodes[r].flags & flagAlive }

// cost of an expression: its node, row, fate and place in a map.
const nodeBytes = 140

func (s *Set) add(n node) Ref {
	r := Ref(len(s.nodes))
	s.nodes = append(s.nodes, n)
	s.rows = append(s.rows, row{})
	s.fates = append(s.fates, unknown)
	s.onward = append(s.onward, 0)
	s.bytes += nodeBytes
	return r
}

// intern is the expression that a node of fixed size describes.
func (s *Set) intern(n node) Ref {
	s.steps++
	if r, known := s.simple[n]; known {
		return r
	}
	r := s.add(n)
	s.simple[n] = r
	return r
}

func operandsKey(k kind, operands []Ref) string {
	key := make([]byte, 0, 64)
	key = append(key, byte(k))
	for _, r := range operands {
		key = append(key, byte(r), byte(r>>8), byte(r>>16), byte(r>>24))
	}
	return string(key)
}

// internOperands is the union or intersection of sorted operands.
func (s *Set) internOperands(k kind, operands []Ref, flags uint8) Ref {
	s.steps += len(operands)
	key := operandsKey(k, operands)
	if r, known := s.compound[key]; known {
		return r
	}
	from := len(s.operands)
	s.operands = append(s.operands, operands...)
	r := s.add(node{kind: k, flags: flags, lo: int32(from), hi: int32(len(s.operands))})
	s.compound[key] = r
	s.bytes += 9 * len(operands)
	return r
}

// parts are the operands of a union or intersection. They stay as they are while others are made.
func (s *Set) parts(r Ref) []Ref {
	n := s.nodes[r]
	return s.operands[n.lo:n.hi:n.hi]
}
