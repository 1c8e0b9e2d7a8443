package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// class is the set of Unicode properties that split patterns ask for. A code point has exactly one bit.
type class uint16

const (
	upper       class = 1 << iota // Lu, Lt
	lower                         // Ll
	letterOther                   // Lm, Lo
	mark                          // M
	number                        // N
	blank                         // White_Space but for CR and LF
	newline                       // CR, LF
	punctuation                   // P
	symbol                        // S
	other                         // the rest: control, format, private use, unassigned

	letter  = upper | lower | letterOther
	space   = blank | newline
	endText = class(0) // what lies behind the last code point: in no class
)

// classTable maps a code point to its class: a page number per 256 code points, equal pages stored once.
type classTable struct {
	ascii [utf8.RuneSelf]class
	page  [(unicode.MaxRune + 1) >> 8]uint16
	data  []class
}

// newClassTable builds the table from package unicode, the edition of which decides about new code points.
func newClassTable() *classTable {
	flat := make([]class, unicode.MaxRune+1)
	set := func(c class, tables ...*unicode.RangeTable) {
		for _, table := range tables {
			for _, r := range table.R16 {
				for x := uint32(r.Lo); x <= uint32(r.Hi); x += uint32(r.Stride) {
					flat[x] = c
				}
			}
			for _, r := range table.R32 {
				for x := r.Lo; x <= r.Hi; x += r.Stride {
					flat[x] = c
				}
			}
		}
	}
	set(upper, unicode.Lu, unicode.Lt)
	set(lower, unicode.Ll)
	set(letterOther, unicode.Lm, unicode.Lo)
	set(mark, unicode.M)
	set(number, unicode.N)
	set(punctuation, unicode.P)
	set(symbol, unicode.S)
	set(blank, unicode.White_Space)
	flat['\r'], flat['\n'] = newline, newline

	t := new(classTable)
	seen := make(map[[256]class]uint16)
	for p := range t.page {
		page := [256]class(flat[p<<8:])
		for i, c := range page {
			if c == 0 {
				page[i] = other
			}
		}
		number, ok := seen[page]
		if !ok {
			number = uint16(len(seen))
			seen[page] = number
			t.data = append(t.data, page[:]...)
		}
		t.page[p] = number
	}
	copy(t.ascii[:], t.data)
	return t
}

// at is the class and the length of the code point at text[i:]; endText and 0 at the end.
func (t *classTable) at(text string, i int) (class, int) {
	if i >= len(text) {
		return endText, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return t.ascii[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return t.data[int(t.page[r>>8])<<8|int(r&0xff)], n
}

// run is where the run of code points in set that starts at i ends.
func (t *classTable) run(text string, i int, set class) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if t.ascii[b]&set == 0 {
				return i
			}
			i++
			continue
		}
		c, n := t.at(text, i)
		if c&set == 0 {
			return i
		}
		i += n
	}
	return i
}

// runAtMost is run, ended after limit code points.
func (t *classTable) runAtMost(text string, i int, set class, limit int) int {
	for range limit {
		c, n := t.at(text, i)
		if c&set == 0 {
			return i
		}
		i += n
	}
	return i
}
