package regex

import (
	"slices"
)

// Words that are few and short are one expression wherever they come from. Longer ones are known by their place in a list.
const (
	shortWord  = 32 // bytes of one word
	fewWords   = 16
	shortWords = 256 // bytes of all
)

// Literal is a text as it stands.
func (s *Set) Literal(text string) Ref {
	switch len(text) {
	case 0:
		return Empty
	case 1:
		return s.Bytes(text[0], text[0])
	}
	if len(text) > shortWord {
		return s.list([]string{text})
	}
	if r, known := s.literals[text]; known {
		return r
	}
	r := s.list([]string{text})
	s.literals[text] = r
	return r
}

// list is one of sorted words, which are at least one.
func (s *Set) list(words []string) Ref {
	s.steps += len(words)
	hash := hashWords(words)
	for _, at := range s.listsBy[hash] {
		if slices.Equal(s.lists[at], words) {
			return s.wordsFrom(at, 0, int32(len(words)), 0)
		}
	}
	at := Ref(len(s.lists))
	s.lists = append(s.lists, words)
	s.listsBy[hash] = append(s.listsBy[hash], at)
	for _, w := range words {
		s.bytes += 16 + len(w)
	}
	return s.wordsFrom(at, 0, int32(len(words)), 0)
}

func hashWords(words []string) uint64 {
	hash := uint64(14695981039346656037) // FNV-1a
	for _, w := range words {
		for i := range len(w) {
			hash = (hash ^ uint64(w[i])) * 1099511628211
		}
		hash = (hash ^ uint64(len(w))) * 1099511628211
	}
	return hash
}

// wordsRange is what is left of some words of a list.
func (s *Set) wordsRange(list Ref, lo, hi int32, depth Ref) Ref {
	if lo == hi {
		return Nothing
	}
	words := s.lists[list][lo:hi]
	if len(words) == 1 {
		if rest := words[0][depth:]; len(rest) <= shortWord {
			return s.Literal(rest)
		}
	} else if len(words) <= fewWords {
		size := 0
		for _, w := range words {
			size += len(w) - int(depth)
		}
		if size <= shortWords {
			return s.list(cut(words, int(depth)))
		}
	}
	return s.wordsFrom(list, lo, hi, depth)
}

// cut leaves the first bytes of words out.
func cut(words []string, depth int) []string {
	rest := make([]string, len(words))
	for i, w := range words {
		rest[i] = w[depth:]
	}
	return rest
}

func (s *Set) wordsFrom(list Ref, lo, hi int32, depth Ref) Ref {
	flags := flagAlive
	if len(s.lists[list][lo]) == int(depth) {
		flags |= flagNullable
	}
	return s.intern(node{kind: kindWords, flags: flags, a: list, b: depth, lo: lo, hi: hi})
}

// Words is one of some texts. It is cheaper than an Or of literals, and makes the same expression.
func (s *Set) Words(texts ...string) Ref {
	words := slices.Clone(texts)
	slices.Sort(words)
	words = slices.Compact(words)
	var short []Ref
	long := words[:0]
	for _, w := range words {
		if len(w) < 2 {
			short = append(short, s.Literal(w))
		} else {
			long = append(long, w)
		}
	}
	switch len(long) {
	case 0:
	case 1:
		short = append(short, s.Literal(long[0]))
	default:
		short = append(short, s.list(long))
	}
	return s.Or(short...)
}

// mergeWords is one of the words of several expressions.
func (s *Set) mergeWords(refs []Ref) Ref {
	var words []string
	for _, r := range refs {
		n := s.nodes[r]
		words = append(words, cut(s.lists[n.a][n.lo:n.hi], int(n.b))...)
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) == 1 {
		return s.Literal(words[0])
	}
	return s.list(words)
}

// Word is the one text that r matches; false: it has others, or its form does not tell.
func (s *Set) Word(r Ref) (string, bool) { return s.single(r) }

// single is the text of an expression that is one word or one byte.
func (s *Set) single(r Ref) (string, bool) {
	n := s.nodes[r]
	switch n.kind {
	case kindClass:
		if c := s.sets[n.lo]; c.count() == 1 {
			return string([]byte{c.first()}), true
		}
	case kindWords:
		if n.hi == n.lo+1 {
			return s.lists[n.a][n.lo][n.b:], true
		}
	}
	return "", false
}

// firstBytes are the bytes that words begin with.
func (s *Set) firstBytes(r Ref) (c byteSet) {
	n := s.nodes[r]
	words, depth := s.lists[n.a][n.lo:n.hi], int(n.b)
	for len(words) > 0 {
		s.steps++
		if len(words[0]) == depth {
			words = words[1:]
			continue
		}
		b := words[0][depth]
		c.add(b)
		words = words[wordsUpTo(words, depth, b):]
	}
	return c
}

// wordsUpTo is how many words have a byte of at most b at a depth, or end there.
func wordsUpTo(words []string, depth int, b byte) int {
	if w := words[len(words)-1]; len(w) == depth || w[depth] <= b {
		return len(words)
	}
	at, _ := slices.BinarySearchFunc(words, b, func(w string, b byte) int {
		if len(w) == depth || w[depth] <= b {
			return -1
		}
		return 1
	})
	return at
}

// stepWords is the derivative of words.
func (s *Set) stepWords(n node, b byte) Ref {
	words, depth := s.lists[n.a][n.lo:n.hi], int(n.b)
	lo := 0
	if b > 0 {
		lo = wordsUpTo(words, depth, b-1)
	} else if len(words[0]) == depth {
		lo = 1
	}
	if lo == len(words) {
		return Nothing
	}
	hi := lo + wordsUpTo(words[lo:], depth, b)
	if lo == hi {
		return Nothing
	}
	return s.wordsRange(n.a, n.lo+int32(lo), n.lo+int32(hi), n.b+1)
}
