package jinja

import (
	"strings"
	"unicode/utf8"
)

// This file holds the methods of strings that build a new text.

func replaceMethod(r *run, s Str, a args) (Value, error) {
	values, err := a.bind("replace", 2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	old, ok := values[0].(Str)
	if !ok {
		return nil, failf("replace() argument 1 must be str, not %s", values[0].typeName())
	}
	with, ok := values[1].(Str)
	if !ok {
		return nil, failf("replace() argument 2 must be str, not %s", values[1].typeName())
	}
	count, err := integerArgument(values[2], -1)
	if err != nil {
		return nil, err
	}
	return r.replace(s, old, with, count)
}

// replace replaces old by with, at most count times where count is not negative.
func (r *run) replace(s, old, with Str, count int) (Value, error) {
	if count == 0 || !strings.Contains(s.text, old.text) {
		return s, r.spend(len(s.text) / bytesPerStep)
	}
	b := textBuilder{run: r}
	pos := 0
	for n := 0; count < 0 || n < count; n++ {
		end, next := pos, pos
		if old.text != "" {
			i := strings.Index(s.text[pos:], old.text)
			if i < 0 {
				break
			}
			end, next = pos+i, pos+i+len(old.text)
		} else if n > 0 { // between any two characters
			if pos == len(s.text) {
				break
			}
			_, size := utf8.DecodeRuneInString(s.text[pos:])
			end, next = pos+size, pos+size
		}
		b.add(s.slice(pos, end))
		b.add(with)
		pos = next
		if err := r.spend(1); err != nil {
			return nil, err
		}
	}
	b.add(s.slice(pos, len(s.text)))
	out := b.str()
	out.markup = s.markup
	return out, r.over
}

func joinMethod(r *run, s Str, a args) (Value, error) {
	values, err := a.bind("join", 1, "iterable")
	if err != nil {
		return nil, err
	}
	if _, err := r.iterate(values[0]); err != nil {
		return nil, failf("can only join an iterable")
	}
	items, err := r.collect(values[0])
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if _, ok := item.(Str); !ok {
			return nil, failf("sequence item %d: expected str instance, %s found", i, item.typeName())
		}
	}
	return r.joinAll(s, items)
}

// joinAll is the text of the items with a separator between them.
func (r *run) joinAll(separator Str, items []Value) (Value, error) {
	b := textBuilder{run: r}
	for i, item := range items {
		if i > 0 {
			b.add(separator)
		}
		s, err := r.str(item)
		if err != nil {
			return nil, err
		}
		b.add(s)
	}
	out := b.str()
	out.markup = separator.markup
	return out, r.over
}

func justifyMethod(r *run, id string, s Str, a args) (Value, error) {
	values, err := a.bind(id, 1, "width", "fillchar")
	if err != nil {
		return nil, err
	}
	width, err := integerArgument(values[0], 0)
	if err != nil {
		return nil, err
	}
	fill, err := textArgument(values[1], Control(" "))
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(fill.text) != 1 {
		return nil, failf("The fill character must be exactly one character long")
	}
	missing := width - utf8.RuneCountInString(s.text)
	if missing <= 0 {
		return s, nil
	}
	b := textBuilder{run: r}
	if id == "rjust" {
		b.addRepeated(fill, missing)
	}
	b.add(s)
	if id == "ljust" {
		b.addRepeated(fill, missing)
	}
	out := b.str()
	out.markup = s.markup
	return out, r.over
}

func zfillMethod(r *run, s Str, a args) (Value, error) {
	values, err := a.bind("zfill", 1, "width")
	if err != nil {
		return nil, err
	}
	width, err := integerArgument(values[0], 0)
	if err != nil {
		return nil, err
	}
	sign := 0
	if s.text != "" && (s.text[0] == '-' || s.text[0] == '+') {
		sign = 1
	}
	b := textBuilder{run: r}
	b.add(s.slice(0, sign))
	b.addRepeated(Control("0"), width-utf8.RuneCountInString(s.text))
	b.add(s.slice(sign, len(s.text)))
	return b.str(), r.over
}
