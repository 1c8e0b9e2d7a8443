package regex

import "slices"

// endings are texts that expressions match, the last that served to find one alive first.
type endings [][]byte

// Bounds of endings: they keep the search for one that serves cheaper than a search for a new one.
const (
	mostEndings   = 8
	longestEnding = 32
	longestFound  = 512 // text whose end is looked at
)

// add puts in front the end of the text that an expression was found to match: as little of it as the expression matches by itself, so that it
// serves many.
func (e *endings) add(s *Set, r Ref) {
	var text []byte
	for d := r; s.fateOf(d) == alive && !s.Nullable(d) && s.sure(d) == 0; {
		if len(text) == longestFound {
			return
		}
		by := s.onward[d]
		text, d = append(text, by), s.Derive(d, by)
	}
	for n := 1; n <= min(len(text), longestEnding); n++ {
		behind := text[len(text)-n:]
		if d := s.DeriveText(r, string(behind)); d != Nothing && s.fateOf(d) == alive {
			*e = slices.Insert((*e)[:min(len(*e), mostEndings-1)], 0, behind)
			return
		}
	}
}

// lead reports whether one of the texts leads an expression to one that is known to be alive. What it meets on the way is then known to be so.
func (e endings) lead(s *Set, r Ref) bool {
	var passed [longestEnding]Ref
	for at, text := range e {
		n, d := 0, r
		for ; n < len(text) && s.fateOf(d) == unknown; n++ {
			passed[n] = d
			d = s.Derive(d, text[n])
		}
		if s.fateOf(d) != alive {
			continue
		}
		for i, p := range passed[:n] {
			s.found(p, text[i])
		}
		copy(e[1:at+1], e[:at])
		e[0] = text
		return true
	}
	return false
}

// found notes that an expression is alive by a byte.
func (s *Set) found(r Ref, by byte) {
	s.fates[r], s.onward[r] = alive, by
}
