package regex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mark is how large a set was at a time.
type Mark struct {
	nodes, sets, operands, lists int
}

// Mark marks the expressions that there are now. Patterns must not be parsed behind it.
func (s *Set) Mark() Mark {
	return Mark{len(s.nodes), len(s.sets), len(s.operands), len(s.lists)}
}

// Fork is a set that has the expressions which s had at a mark, by the same Refs, and nothing that was made since.
func (s *Set) Fork(m Mark) *Set {
	f := NewSet()
	f.Budget = s.Budget
	f.nodes = slices.Clone(s.nodes[:m.nodes])
	f.rows = make([]row, m.nodes)
	f.fates = make([]fate, m.nodes)
	f.onward = make([]byte, m.nodes)
	f.sets = slices.Clone(s.sets[:m.sets])
	f.operands = slices.Clone(s.operands[:m.operands])
	f.lists = slices.Clone(s.lists[:m.lists])
	f.loops = slices.Clone(s.loops)
	for r, n := range f.nodes {
		switch n.kind {
		case kindClass:
			f.classRefs[f.sets[n.lo]] = Ref(r)
		case kindUnion, kindIntersect:
			f.compound[operandsKey(n.kind, f.parts(Ref(r)))] = Ref(r)
		default:
			f.simple[n] = Ref(r)
		}
	}
	for at, words := range f.lists {
		hash := hashWords(words)
		f.listsBy[hash] = append(f.listsBy[hash], Ref(at))
		for _, w := range words {
			f.bytes += 16 + len(w)
		}
	}
	maps.Copy(f.chars, s.chars)
	maps.DeleteFunc(f.chars, func(_ string, r Ref) bool { return int(r) >= m.nodes })
	f.bytes += nodeBytes*m.nodes + 96*m.sets + 9*m.operands
	return f
}

// errEncoding says that bytes are none of AppendBinary.
var errEncoding = errors.New("bytes that are no encoded expressions of this set")

// AppendBinary appends expressions, as they can be read in a set that has the same expressions at the mark.
func (s *Set) AppendBinary(to []byte, m Mark, refs []Ref) []byte {
	e := encoder{set: s, mark: m, number: map[Ref]int{}}
	for _, r := range refs {
		e.visit(r)
	}
	to = binary.AppendUvarint(to, uint64(len(e.order)))
	for _, r := range e.order {
		to = e.node(to, r)
	}
	to = binary.AppendUvarint(to, uint64(len(refs)))
	for _, r := range refs {
		to = e.ref(to, r)
	}
	return to
}

// encoder numbers the expressions behind a mark, parts first.
type encoder struct {
	set    *Set
	mark   Mark
	number map[Ref]int
	order  []Ref
}

// visit numbers an expression and its parts.
func (e *encoder) visit(r Ref) {
	type frame struct {
		ref  Ref
		left []Ref // parts that are not visited yet
	}
	known := func(r Ref) bool {
		_, numbered := e.number[r]
		return numbered || int(r) < e.mark.nodes
	}
	if known(r) {
		return
	}
	stack := []frame{{r, e.set.below(r)}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.left) == 0 {
			if !known(top.ref) {
				e.number[top.ref] = len(e.order)
				e.order = append(e.order, top.ref)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		next := top.left[0]
		top.left = top.left[1:]
		if !known(next) {
			stack = append(stack, frame{next, e.set.below(next)})
		}
	}
}

// below are the expressions that an expression is made of.
func (s *Set) below(r Ref) []Ref {
	switch n := s.nodes[r]; n.kind {
	case kindConcat:
		return []Ref{n.a, n.b}
	case kindUnion, kindIntersect:
		return s.parts(r)
	case kindComplement, kindRepeat:
		return []Ref{n.a}
	}
	return nil
}

// ref appends an expression: even numbers are those at the mark, odd ones those that were encoded.
func (e *encoder) ref(to []byte, r Ref) []byte {
	if int(r) < e.mark.nodes {
		return binary.AppendUvarint(to, 2*uint64(r))
	}
	return binary.AppendUvarint(to, 2*uint64(e.number[r])+1)
}

func (e *encoder) node(to []byte, r Ref) []byte {
	n := e.set.nodes[r]
	to = append(to, byte(n.kind))
	switch n.kind {
	case kindClass:
		for _, word := range e.set.sets[n.lo] {
			to = binary.LittleEndian.AppendUint64(to, word)
		}
	case kindWords:
		if int(n.a) < e.mark.lists {
			for _, v := range []int32{int32(n.a) + 1, n.lo, n.hi, int32(n.b)} {
				to = binary.AppendUvarint(to, uint64(v))
			}
			break
		}
		to = append(to, 0)
		words := cut(e.set.lists[n.a][n.lo:n.hi], int(n.b))
		to = binary.AppendUvarint(to, uint64(len(words)))
		for _, w := range words {
			to = binary.AppendUvarint(to, uint64(len(w)))
			to = append(to, w...)
		}
	case kindUnion, kindIntersect:
		to = binary.AppendUvarint(to, uint64(n.hi-n.lo))
		for _, p := range e.set.parts(r) {
			to = e.ref(to, p)
		}
	case kindConcat:
		to = e.ref(e.ref(to, n.a), n.b)
	case kindComplement:
		to = e.ref(to, n.a)
	case kindRepeat:
		to = e.ref(to, n.a)
		to = binary.AppendUvarint(to, uint64(n.lo))
		to = binary.AppendUvarint(to, uint64(n.hi))
	default:
		panic(fmt.Sprintf("BUG: an expression of kind %d was made behind a mark", n.kind))
	}
	return to
}

// ReadBinary reads what AppendBinary has appended, and returns what is behind it.
func (s *Set) ReadBinary(data []byte, m Mark) (refs []Ref, rest []byte, err error) {
	d := decoder{set: s, mark: m, data: data}
	for n := d.count(1); n > 0 && !d.bad; n-- {
		d.made = append(d.made, d.node())
	}
	for n := d.count(1); n > 0 && !d.bad; n-- {
		refs = append(refs, d.ref())
	}
	if d.bad {
		return nil, nil, errEncoding
	}
	return refs, d.data, nil
}

type decoder struct {
	set  *Set
	mark Mark
	data []byte
	made []Ref
	bad  bool
}

// number reads a number below a limit.
func (d *decoder) number(limit int) int {
	v, n := binary.Uvarint(d.data)
	if n <= 0 || v >= uint64(limit) {
		d.bad = true
		return 0
	}
	d.data = d.data[n:]
	return int(v)
}

// count reads how many things of at least some bytes follow.
func (d *decoder) count(bytes int) int { return d.number(len(d.data)/bytes + 1) }

func (d *decoder) ref() Ref {
	v := d.number(2 * max(d.mark.nodes, len(d.made)))
	switch {
	case d.bad:
	case v%2 == 0 && v/2 < d.mark.nodes:
		return Ref(v / 2)
	case v%2 == 1 && v/2 < len(d.made):
		return d.made[v/2]
	}
	d.bad = true
	return Nothing
}

// take takes bytes.
func (d *decoder) take(n int) []byte {
	if n > len(d.data) {
		d.bad = true
		return make([]byte, n)
	}
	taken := d.data[:n]
	d.data = d.data[n:]
	return taken
}

func (d *decoder) node() Ref {
	s := d.set
	switch k := kind(d.take(1)[0]); k {
	case kindClass:
		var c byteSet
		words := d.take(32)
		for at := range c {
			c[at] = binary.LittleEndian.Uint64(words[8*at:])
		}
		return s.class(c)
	case kindWords:
		return d.words()
	case kindUnion, kindIntersect:
		var parts []Ref
		for n := d.count(1); n > 0 && !d.bad; n-- {
			parts = append(parts, d.ref())
		}
		if k == kindUnion {
			return s.or(parts)
		}
		return s.and(parts)
	case kindConcat:
		a := d.ref()
		return s.concat(a, d.ref())
	case kindComplement:
		return s.Not(d.ref())
	case kindRepeat:
		body, lo, hi := d.ref(), int32(d.number(maxCount+1)), int32(d.number(unbounded+1))
		if lo > hi || hi != unbounded && hi > maxCount {
			d.bad = true
			return Nothing
		}
		return s.repeat(counted{body, lo, hi})
	}
	d.bad = true
	return Nothing
}

func (d *decoder) words() Ref {
	s := d.set
	list := d.number(d.mark.lists + 1)
	if list > 0 {
		words := s.lists[list-1]
		lo, hi, depth := d.number(len(words)), d.number(len(words)+1), d.number(unbounded)
		if d.bad || lo >= hi || depth > len(words[lo]) || !strings.HasPrefix(words[hi-1], words[lo][:depth]) {
			d.bad = true
			return Nothing
		}
		return s.wordsRange(Ref(list-1), int32(lo), int32(hi), Ref(depth))
	}
	var words []string
	for n := d.count(1); n > 0 && !d.bad; n-- {
		words = append(words, string(d.take(d.count(1))))
	}
	for at := range words {
		if at > 0 && words[at-1] >= words[at] {
			d.bad = true
		}
	}
	if d.bad || len(words) == 0 {
		d.bad = true
		return Nothing
	}
	if len(words) == 1 {
		return s.Literal(words[0])
	}
	return s.list(words)
}
