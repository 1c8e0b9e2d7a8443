package regex

import (
	"math/bits"
	"slices"
)

// byteSet is a set of bytes.
type byteSet [4]uint64

func (c *byteSet) add(b byte)     { c[b>>6] |= 1 << (b & 63) }
func (c byteSet) has(b byte) bool { return c[b>>6]>>(b&63)&1 != 0 }
func (c byteSet) within(d byteSet) bool {
	return c[0]&^d[0]|c[1]&^d[1]|c[2]&^d[2]|c[3]&^d[3] == 0
}

func (c byteSet) or(d byteSet) byteSet {
	return byteSet{c[0] | d[0], c[1] | d[1], c[2] | d[2], c[3] | d[3]}
}

func (c byteSet) and(d byteSet) byteSet {
	return byteSet{c[0] & d[0], c[1] & d[1], c[2] & d[2], c[3] & d[3]}
}

func (c byteSet) count() int {
	return bits.OnesCount64(c[0]) + bits.OnesCount64(c[1]) + bits.OnesCount64(c[2]) + bits.OnesCount64(c[3])
}

// first is the least byte of a set that is not empty.
func (c byteSet) first() byte {
	for i, word := range c {
		if word != 0 {
			return byte(64*i + bits.TrailingZeros64(word))
		}
	}
	return 0
}

// class is one byte of a set.
func (s *Set) class(c byteSet) Ref {
	s.steps++
	if c == (byteSet{}) {
		return Nothing
	}
	if r, known := s.classRefs[c]; known {
		return r
	}
	s.sets = append(s.sets, c)
	r := s.add(node{kind: kindClass, flags: flagAlive, lo: int32(len(s.sets) - 1)})
	s.classRefs[c] = r
	s.bytes += 3 * len(c) * 8
	return r
}

// set has the bytes of a class.
func (s *Set) set(r Ref) byteSet { return s.sets[s.nodes[r].lo] }

// Bytes is one byte from lo to hi.
func (s *Set) Bytes(lo, hi byte) Ref {
	var c byteSet
	for b := int(lo); b <= int(hi); b++ {
		c.add(byte(b))
	}
	return s.class(c)
}

// Classes cuts the bytes into classes that derivatives cannot tell apart.
type Classes struct {
	Of      [256]uint8 // the class of a byte
	Members []byte     // one byte of each class
}

// Count is how many classes there are.
func (c *Classes) Count() int { return len(c.Members) }

// Classes are classes of bytes by which the derivatives of each of some expressions are equal. Equal cuts are one pointer.
func (s *Set) Classes(refs ...Ref) *Classes {
	if len(refs) == 1 {
		return s.classesOf(refs[0])
	}
	cut := cutting{count: 1}
	for _, r := range refs {
		cut.refine(s, s.classesOf(r))
	}
	return s.internCut(&cut)
}

func (s *Set) classesOf(r Ref) *Classes {
	if c := s.rows[r].classes; c != nil {
		return c
	}
	c := s.newClasses(r)
	s.rows[r].classes = c
	return c
}

// newClasses is classesOf for an expression that has none yet.
func (s *Set) newClasses(r Ref) *Classes {
	switch n := s.nodes[r]; n.kind {
	case kindConcat:
		if !s.Nullable(n.a) {
			return s.classesOf(n.a)
		}
		if s.nodes[n.a].kind == kindRepeat {
			return s.both(s.classesOf(n.a), s.classesOf(n.b))
		}
	case kindComplement, kindRepeat:
		return s.classesOf(n.a)
	}
	cut := cutting{count: 1}
	s.cut(r, &cut)
	return s.internCut(&cut)
}

// both tells bytes apart that a or b tells apart. It is remembered: counts make many expressions that have the same two.
func (s *Set) both(a, b *Classes) *Classes {
	pair := [2]*Classes{a, b}
	c := s.pairs[pair]
	if c == nil {
		cut := cutting{count: 1}
		cut.refine(s, a)
		cut.refine(s, b)
		c = s.internCut(&cut)
		s.pairs[pair] = c
	}
	return c
}

// cut refines classes by what the first byte of r decides.
func (s *Set) cut(r Ref, cut *cutting) {
	for {
		s.steps++
		n := s.nodes[r]
		switch n.kind {
		case kindClass:
			cut.split(s, s.sets[n.lo])
		case kindWords:
			cut.singles = cut.singles.or(s.firstBytes(r))
		case kindConcat:
			s.cut(n.a, cut)
			if s.Nullable(n.a) {
				r = n.b
				continue
			}
		case kindUnion, kindIntersect:
			for _, o := range s.parts(r) {
				s.cutPart(o, cut)
			}
		case kindComplement, kindRepeat:
			s.cutPart(n.a, cut)
		case kindLoop:
			s.cutPart(s.loops[n.lo], cut)
		}
		return
	}
}

// cutPart is cut for a part: it keeps the classes of those that are not cheap.
func (s *Set) cutPart(r Ref, cut *cutting) {
	n := s.nodes[r]
	if n.kind == kindConcat {
		if head := s.nodes[n.a].kind; head == kindClass || head == kindWords {
			s.cut(r, cut)
			return
		}
	}
	if n.kind <= kindWords {
		s.cut(r, cut)
		return
	}
	cut.refine(s, s.classesOf(r))
}

// cutting is a cut in the making.
type cutting struct {
	of      [256]uint8
	count   int
	singles byteSet // bytes that are to be alone
}

// splitter names pairs of classes. names has one more than a name, and 0 where a pair has none yet.
type splitter struct{ names []uint16 }

// start makes room for pairs of some numbers.
func (sp *splitter) start(count, others int) {
	if n := count * others; n > len(sp.names) {
		sp.names = make([]uint16, n)
	} else {
		clear(sp.names[:n])
	}
}

func (c *cutting) refine(s *Set, by *Classes) {
	if n := by.Count(); n > 1 {
		c.pair(s, &by.Of, n)
	}
}

func (c *cutting) split(s *Set, by byteSet) {
	if by.count() == 1 {
		c.singles = c.singles.or(by)
		return
	}
	var of [256]uint8
	for b := range 256 {
		of[b] = uint8(by[b>>6] >> (b & 63) & 1)
	}
	c.pair(s, &of, 2)
}

// pair refines by a cut into some classes.
func (c *cutting) pair(s *Set, by *[256]uint8, others int) {
	s.scratch.start(c.count, others)
	names := s.scratch.names
	count := 0
	for b := range 256 {
		name := &names[int(c.of[b])*others+int(by[b])]
		if *name == 0 {
			count++
			*name = uint16(count)
		}
		c.of[b] = uint8(*name - 1)
	}
	c.count = count
}

// internCut ends a cut.
func (s *Set) internCut(c *cutting) *Classes {
	var of [256]uint8
	var names [256]int16 // by class; one more than a name
	var members [256]byte
	count := 0
	for b := range 256 {
		if c.singles.has(byte(b)) {
			of[b], members[count] = uint8(count), byte(b)
			count++
			continue
		}
		name := &names[c.of[b]]
		if *name == 0 {
			members[count] = byte(b)
			count++
			*name = int16(count)
		}
		of[b] = uint8(*name - 1)
	}
	if known, ok := s.classes[of]; ok {
		return known
	}
	done := &Classes{Of: of, Members: slices.Clone(members[:count])}
	s.classes[of] = done
	s.bytes += 1024
	return done
}
