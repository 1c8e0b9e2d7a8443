package regex

import "math/bits"

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
	cut := newCut()
	for _, r := range refs {
		cut.refine(s, s.classesOf(r))
	}
	return s.internCut(cut)
}

func (s *Set) classesOf(r Ref) *Classes {
	if c := s.rows[r].classes; c != nil {
		return c
	}
	c := s.sharedClasses(r)
	if c == nil {
		cut := newCut()
		s.cut(r, cut)
		c = s.internCut(cut)
	}
	s.rows[r].classes = c
	return c
}

// sharedClasses are classes that other expressions have, nil where there are none: counts do not matter to them.
func (s *Set) sharedClasses(r Ref) *Classes {
	n := s.nodes[r]
	head := r
	if n.kind == kindConcat {
		head = n.a
	}
	if s.nodes[head].kind != kindRepeat {
		return nil
	}
	s.steps++
	c := s.classesOf(s.nodes[head].a)
	if head == r || !s.Nullable(head) {
		return c
	}
	pair := [2]*Classes{c, s.classesOf(n.b)}
	both := s.pairs[pair]
	if both == nil {
		cut := newCut()
		cut.refine(s, pair[0])
		cut.refine(s, pair[1])
		both = s.internCut(cut)
		s.pairs[pair] = both
	}
	return both
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

func newCut() *cutting { return &cutting{count: 1} }

// splitter renames pairs of classes.
type splitter struct {
	epoch uint32
	seen  []uint32
	name  []uint8
}

// start forgets all pairs; there will be fewer than some number of them.
func (sp *splitter) start(pairs int) {
	if len(sp.seen) < pairs {
		sp.seen, sp.name, sp.epoch = make([]uint32, pairs), make([]uint8, pairs), 0
	}
	sp.epoch++
	if sp.epoch == 0 {
		clear(sp.seen)
		sp.epoch = 1
	}
}

// pair names a pair of two classes by its number, counting new ones.
func (sp *splitter) pair(number int, count *int) uint8 {
	if sp.seen[number] != sp.epoch {
		sp.seen[number], sp.name[number] = sp.epoch, uint8(*count)
		*count++
	}
	return sp.name[number]
}

func (c *cutting) refine(s *Set, by *Classes) {
	if by.Count() == 1 {
		return
	}
	s.scratch.start(c.count * by.Count())
	first := c.count
	c.count = 0
	for b := range 256 {
		c.of[b] = s.scratch.pair(int(by.Of[b])*first+int(c.of[b]), &c.count)
	}
}

func (c *cutting) split(s *Set, by byteSet) {
	if by.count() == 1 {
		c.singles = c.singles.or(by)
		return
	}
	s.scratch.start(2 * c.count)
	first := c.count
	c.count = 0
	for b := range 256 {
		inside := int(by[b>>6] >> (b & 63) & 1)
		c.of[b] = s.scratch.pair(inside*first+int(c.of[b]), &c.count)
	}
}

// internCut ends a cut.
func (s *Set) internCut(c *cutting) *Classes {
	var done Classes
	var names [256]int16
	for i := range names {
		names[i] = -1
	}
	for b := range 256 {
		if c.singles.has(byte(b)) {
			done.Of[b] = uint8(len(done.Members))
			done.Members = append(done.Members, byte(b))
			continue
		}
		name := &names[c.of[b]]
		if *name < 0 {
			*name = int16(len(done.Members))
			done.Members = append(done.Members, byte(b))
		}
		done.Of[b] = uint8(*name)
	}
	if known, ok := s.classes[done.Of]; ok {
		return known
	}
	s.classes[done.Of] = &done
	s.bytes += 1024
	return &done
}
