package regex

import (
	"slices"
	"unicode/utf8"
)

// Runes is one character of some ranges: pairs of a first and a last. Surrogates are none.
func (s *Set) Runes(ranges ...rune) Ref { return s.character(normalize(ranges)) }

// NotRunes is one character outside of some ranges, which are pairs of a first and a last.
func (s *Set) NotRunes(ranges ...rune) Ref { return s.character(negate(normalize(ranges))) }

// Text is any text of characters.
func (s *Set) Text() Ref { return s.Repeat(s.NotRunes(), 0, -1) }

// normalize sorts ranges, joins those that touch, and leaves out surrogates and what is no character.
func normalize(ranges []rune) []rune {
	pairs := make([][2]rune, 0, len(ranges)/2)
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := max(ranges[i], 0), min(ranges[i+1], utf8.MaxRune)
		if lo < 0xD800 {
			pairs = append(pairs, [2]rune{lo, min(hi, 0xD7FF)})
		}
		if hi > 0xDFFF {
			pairs = append(pairs, [2]rune{max(lo, 0xE000), hi})
		}
	}
	pairs = slices.DeleteFunc(pairs, func(p [2]rune) bool { return p[0] > p[1] })
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	var class []rune
	for _, p := range pairs {
		if n := len(class); n > 0 && p[0] <= class[n-1]+1 {
			class[n-1] = max(class[n-1], p[1])
		} else {
			class = append(class, p[0], p[1])
		}
	}
	return class
}

// negate is every other character; class is normalized.
func negate(class []rune) []rune {
	var other []rune
	next := rune(0)
	for i := 0; i < len(class); i += 2 {
		other = append(other, next, class[i]-1)
		next = class[i+1] + 1
	}
	return normalize(append(other, next, utf8.MaxRune))
}

// classKey is a class of characters as the key of a map.
func classKey(class []rune) string {
	key := make([]byte, 0, 4*len(class))
	for _, c := range class {
		key = append(key, byte(c), byte(c>>8), byte(c>>16), byte(c>>24))
	}
	return string(key)
}

// character is one of a normalized class, in UTF-8.
func (s *Set) character(class []rune) Ref {
	key := classKey(class)
	if r, known := s.chars[key]; known {
		return r
	}
	bounds := [...]rune{0, 0x80, 0x800, 0x10000, utf8.MaxRune + 1}
	marks := [...]byte{0, 0xC0, 0xE0, 0xF0}
	var lengths []Ref
	for n := 1; n <= 4; n++ {
		var spans [][2]rune
		for i := 0; i < len(class); i += 2 {
			if lo, hi := max(class[i], bounds[n-1]), min(class[i+1], bounds[n]-1); lo <= hi {
				spans = append(spans, [2]rune{lo, hi})
			}
		}
		if len(spans) > 0 {
			lengths = append(lengths, s.encoded(spans, n, marks[n-1]))
		}
	}
	r := s.or(lengths)
	s.chars[key] = r
	s.bytes += 5 * len(key)
	return r
}

// encoded is the last n bytes of characters whose low bits are in sorted spans, which it changes. mark is what the first byte has above its
// bits.
func (s *Set) encoded(spans [][2]rune, n int, mark byte) Ref {
	shift := 6 * (n - 1)
	last := rune(1)<<shift - 1
	heads := map[Ref]*byteSet{} // by what follows
	var tails []Ref
	add := func(from, to rune, tail Ref) {
		if heads[tail] == nil {
			heads[tail] = &byteSet{}
			tails = append(tails, tail)
		}
		for lead := from; lead <= to; lead++ {
			heads[tail].add(mark | byte(lead))
		}
	}
	for i := 0; i < len(spans); {
		lead := spans[i][0] >> shift
		if end := (spans[i][1] + 1) >> shift; spans[i][0]&last == 0 && end > lead {
			add(lead, end-1, s.continuation(n-1))
			if spans[i][0] = end << shift; spans[i][0] > spans[i][1] {
				i++
			}
			continue
		}
		var below [][2]rune
		for ; i < len(spans) && spans[i][0]>>shift == lead; i++ {
			lo, hi := spans[i][0], spans[i][1]
			if hi>>shift > lead { // the rest belongs to bytes behind
				below = append(below, [2]rune{lo & last, last})
				spans[i][0] = (lead + 1) << shift
				break
			}
			below = append(below, [2]rune{lo & last, hi & last})
		}
		add(lead, lead, s.encoded(below, n-1, 0x80))
	}
	parts := make([]Ref, 0, len(tails))
	for _, tail := range tails {
		parts = append(parts, s.concat(s.class(*heads[tail]), tail))
	}
	return s.or(parts)
}

// continuation is n bytes of those that are never the first of a character.
func (s *Set) continuation(n int) Ref {
	return s.Repeat(s.Bytes(0x80, 0xBF), n, n)
}
