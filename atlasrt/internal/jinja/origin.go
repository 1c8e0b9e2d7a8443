package jinja

import "unicode/utf8"

// Range is a half-open range of bytes.
type Range struct{ Start, End int }

// origin says which bytes of a string are data, that is, come from the request and not from the template. A nil origin is
// text of the template alone; allData is data alone; any other lists the ranges of data: sorted, apart and not empty.
type origin struct{ data []Range }

var allData = &origin{}

// slice returns the bytes [start, end) with their origin.
func (s Str) slice(start, end int) Str {
	text := s.text[start:end]
	if s.origin == nil || s.origin == allData {
		return Str{text: text, origin: s.origin, markup: s.markup}
	}
	return Str{text: text, origin: originOf(clip(s.origin.data, start, end), len(text)), markup: s.markup}
}

// clip returns the parts of ranges within [start, end), relative to start.
func clip(ranges []Range, start, end int) []Range {
	var kept []Range
	for _, r := range ranges {
		r.Start, r.End = max(r.Start, start)-start, min(r.End, end)-start
		if r.Start < r.End {
			kept = append(kept, r)
		}
	}
	return kept
}

// originOf is the shortest origin of a text of size bytes with these ranges of data.
func originOf(ranges []Range, size int) *origin {
	switch {
	case len(ranges) == 0:
		return nil
	case len(ranges) == 1 && ranges[0].Start == 0 && ranges[0].End == size:
		return allData
	}
	return &origin{data: ranges}
}

// with returns text made from s where bytes cannot be traced: data as soon as any of s is.
func (s Str) with(text string) Str {
	if s.origin != nil {
		return Str{text: text, origin: allData, markup: s.markup}
	}
	return Str{text: text, markup: s.markup}
}

// textBuilder joins strings and keeps their origins. Past the limit of its run it stops to grow and the run fails.
type textBuilder struct {
	run  *run
	text []byte
	data []Range
}

func (b *textBuilder) add(s Str) {
	start := len(b.text)
	if !b.grow(len(s.text)) {
		return
	}
	b.text = append(b.text, s.text...)
	switch s.origin {
	case nil:
	case allData:
		b.mark(start, len(b.text))
	default:
		for _, r := range s.origin.data {
			b.mark(start+r.Start, start+r.End)
		}
	}
}

// addControl appends text of the template or of the interpreter.
func (b *textBuilder) addControl(text string) {
	if b.grow(len(text)) {
		b.text = append(b.text, text...)
	}
}

// addRepeated appends s count times.
func (b *textBuilder) addRepeated(s Str, count int) {
	if count <= 0 || s.text == "" {
		return
	}
	if count > b.run.maxText/len(s.text) {
		b.run.exceed("text")
		return
	}
	for range count {
		b.add(s)
	}
}

func (b *textBuilder) grow(size int) bool {
	if len(b.text)+size > b.run.maxText {
		b.run.exceed("text")
		return false
	}
	b.run.charge(size / bytesPerStep)
	return true
}

func (b *textBuilder) mark(start, end int) {
	if start == end {
		return
	}
	if n := len(b.data); n > 0 && b.data[n-1].End == start {
		b.data[n-1].End = end
		return
	}
	b.data = append(b.data, Range{start, end})
}

// str returns what was built.
func (b *textBuilder) str() Str {
	return Str{text: string(b.text), origin: originOf(b.data, len(b.text))}
}

// mapRunes replaces every character by a text of the same origin.
func (s Str) mapRunes(r *run, replace func(index int, c rune) string) Str {
	b := textBuilder{run: r}
	r.charge(len(s.text)) // a character costs more than a copy
	index := 0
	for i, c := range s.text {
		size := utf8.RuneLen(c)
		if c == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(s.text[i:])
		}
		part := s.slice(i, i+size)
		part.text = replace(index, c)
		if part.origin != nil {
			part.origin = allData
		}
		b.add(part)
		index++
	}
	out := b.str()
	out.markup = s.markup
	return out
}
