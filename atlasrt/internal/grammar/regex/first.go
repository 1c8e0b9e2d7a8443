package regex

// Bytes is a set of bytes.
type Bytes struct{ set byteSet }

// Has reports whether a byte is in the set.
func (b Bytes) Has(c byte) bool { return b.set.has(c) }

// Only is the byte of a set that has just one.
func (b Bytes) Only() (byte, bool) { return b.set.first(), b.set.count() == 1 }

// First has every byte that a text of r may begin with. It may have others.
func (s *Set) First(r Ref) Bytes {
	var all byteSet
	s.addFirst(r, &all, maxFirst)
	return Bytes{all}
}

// maxFirst is how many expressions First looks at.
const maxFirst = 64

// addFirst adds the bytes that r may begin with, and all where it would look at too many expressions. It returns how many more may be looked at.
func (s *Set) addFirst(r Ref, to *byteSet, left int) int {
	for left--; left >= 0; left-- {
		s.steps++
		n := s.nodes[r]
		switch n.kind {
		case kindNothing, kindEmpty:
			return left
		case kindClass:
			*to = to.or(s.sets[n.lo])
			return left
		case kindWords:
			*to = to.or(s.firstBytes(r))
			return left
		case kindConcat:
			left = s.addFirst(n.a, to, left)
			if !s.Nullable(n.a) {
				return left
			}
			r = n.b
		case kindUnion:
			for _, p := range s.parts(r) {
				left = s.addFirst(p, to, left)
			}
			return left
		case kindIntersect:
			r = s.parts(r)[0]
		case kindRepeat:
			r = n.a
		case kindLoop:
			r = s.loops[n.lo]
		default:
			*to = s.sets[s.nodes[anyByte].lo]
			return left
		}
	}
	*to = s.sets[s.nodes[anyByte].lo]
	return left
}
