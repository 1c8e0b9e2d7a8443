package jinja

import (
	"strings"
)

// textFilter is a filter of strings, nil where there is none of this name.
func textFilter(id string) filter {
	switch id {
	case "trim":
		return trimFilter
	case "string":
		return func(r *run, v Value, a args) (Value, error) {
			if _, err := a.bind(id, 0); err != nil {
				return nil, err
			}
			return r.soft(v)
		}
	case "safe":
		return markupFilter(func(_ *run, s Str) Str { return s })
	case "escape", "e":
		return func(r *run, v Value, a args) (Value, error) {
			if s, ok := v.(Str); ok && s.markup {
				return s, nil
			}
			return markupFilter((*run).escape)(r, v, a)
		}
	case "upper", "lower", "capitalize":
		return func(r *run, v Value, a args) (Value, error) {
			s, err := r.soft(v)
			if err != nil {
				return nil, err
			}
			if _, err := a.bind(id, 0); err != nil {
				return nil, err
			}
			return recase(r, id, s), r.over
		}
	case "title":
		return titleFilter
	case "replace":
		return replaceFilter
	case "indent":
		return indentFilter
	case "format":
		return formatFilter
	}
	return nil
}

// soft is str(v) that keeps the mark of |safe.
func (r *run) soft(v Value) (Str, error) {
	if s, ok := v.(Str); ok {
		return s, nil
	}
	return r.str(v)
}

func markupFilter(change func(*run, Str) Str) filter {
	return func(r *run, v Value, a args) (Value, error) {
		if _, err := a.bind("safe", 0); err != nil {
			return nil, err
		}
		s, err := r.soft(v)
		if err != nil {
			return nil, err
		}
		s = change(r, s)
		s.markup = true
		return s, r.over
	}
}

// escape replaces the characters that HTML reserves; what is marked safe stays.
func (r *run) escape(s Str) Str {
	if s.markup || !strings.ContainsAny(s.text, `&<>'"`) {
		s.markup = true
		return s
	}
	s.markup = true
	return s.mapRunes(r, func(_ int, c rune) string {
		switch c {
		case '&':
			return "&amp;"
		case '<':
			return "&lt;"
		case '>':
			return "&gt;"
		case '\'':
			return "&#39;"
		case '"':
			return "&#34;"
		}
		return string(c)
	})
}

func trimFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("trim", 0, "chars")
	if err != nil {
		return nil, err
	}
	s, err := r.soft(v)
	if err != nil {
		return nil, err
	}
	return strip(s, values[0], true, true)
}

// titleFilter capitalises words, which start after white space, a hyphen or an opening bracket.
func titleFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("title", 0); err != nil {
		return nil, err
	}
	s, err := r.soft(v)
	if err != nil {
		return nil, err
	}
	start := true
	position := 0
	return s.mapRunes(r, func(_ int, c rune) string {
		at := position
		position += len(string(c))
		first := start
		start = isSpace(c) || strings.ContainsRune("-({[<", c)
		if first {
			return upper(c)
		}
		return lower(s.text, at, c)
	}), r.over
}

func replaceFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("replace", 2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	var texts [3]Str
	for i, t := range []Value{v, values[0], values[1]} {
		if texts[i], err = r.str(t); err != nil {
			return nil, err
		}
	}
	count := -1
	if _, none := values[2].(None); !none {
		if count, err = integerArgument(values[2], -1); err != nil {
			return nil, err
		}
	}
	return r.replace(texts[0], texts[1], texts[2], count)
}

func indentFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("indent", 0, "width", "first", "blank")
	if err != nil {
		return nil, err
	}
	s, ok := v.(Str)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return nil, u.failure()
		}
		return nil, failf("unsupported operand type(s) for +=: '%s' and 'str'", v.typeName())
	}
	indention, isText := values[0].(Str)
	if !isText {
		width, err := integerArgument(values[0], 4)
		if err != nil {
			return nil, err
		}
		spaces := textBuilder{run: r}
		spaces.addRepeated(Control(" "), width)
		indention = spaces.str()
	}
	first := values[1] != nil && truth(values[1])
	blank := values[2] != nil && truth(values[2])
	b := textBuilder{run: r}
	if first {
		b.add(indention)
	}
	ending := s
	ending.text += "\n" // as Jinja does, so that an empty text has one line
	for i, line := range ending.lines(false) {
		if i > 0 {
			b.addControl("\n")
			if blank || line.text != "" {
				b.add(indention)
			}
		}
		b.add(line)
	}
	out := b.str()
	out.markup = s.markup
	return out, r.over
}

func formatFilter(r *run, v Value, a args) (Value, error) {
	s, err := r.soft(v)
	if err != nil {
		return nil, err
	}
	if len(a.named) == 0 {
		return r.percentFormat(s, &Tuple{items: a.positional})
	}
	if len(a.positional) > 0 {
		return nil, failf("can't handle positional and keyword arguments at the same time")
	}
	d := NewDict()
	for _, k := range a.named {
		d.Set(Control(k.id), k.value)
	}
	return r.percentFormat(s, d)
}
