package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
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
	case "forceescape":
		return markupFilter(func(r *run, s Str) Str {
			s.markup = false
			return r.escape(s)
		})
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
	case "center":
		return centerFilter
	case "format":
		return formatFilter
	case "truncate":
		return truncateFilter
	case "wordcount":
		return wordCountFilter
	case "striptags":
		return stripTagsFilter
	case "urlencode":
		return urlEncodeFilter
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

func centerFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("center", 0, "width")
	if err != nil {
		return nil, err
	}
	s, err := r.soft(v)
	if err != nil {
		return nil, err
	}
	if values[0] == nil {
		values[0] = Int(80)
	}
	return justifyMethod(r, "center", s, args{positional: values})
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

func truncateFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("truncate", 0, "length", "killwords", "end", "leeway")
	if err != nil {
		return nil, err
	}
	s, err := textArgument(v, Str{})
	if err != nil {
		return nil, failf("object of type '%s' has no len()", v.typeName())
	}
	limit, err := integerArgument(values[0], 255)
	if err != nil {
		return nil, err
	}
	end, err := textArgument(values[2], Control("..."))
	if err != nil {
		return nil, err
	}
	var leeway int
	if _, none := values[3].(None); none {
		values[3] = nil
	}
	if leeway, err = integerArgument(values[3], 5); err != nil {
		return nil, err
	}
	endSize := utf8.RuneCountInString(end.text)
	if limit < endSize {
		return nil, failf("expected length >= %d, got %d", endSize, limit)
	}
	if leeway < 0 {
		return nil, failf("expected leeway >= 0, got %d", leeway)
	}
	size := utf8.RuneCountInString(s.text)
	if size-leeway <= limit {
		return s, nil
	}
	cut := s.slice(0, byteOffset(s.text, limit-endSize, size))
	if values[1] == nil || !truth(values[1]) {
		if i := strings.LastIndexByte(cut.text, ' '); i >= 0 {
			cut = cut.slice(0, i)
		}
	}
	return r.joinText(cut, end)
}

func wordCountFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("wordcount", 0); err != nil {
		return nil, err
	}
	s, err := r.soft(v)
	if err != nil {
		return nil, err
	}
	isWord := func(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c) }
	return Int(len(strings.FieldsFunc(s.text, func(c rune) bool { return !isWord(c) }))), r.spend(len(s.text) / bytesPerStep)
}

func stripTagsFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("striptags", 0); err != nil {
		return nil, err
	}
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	text := removeBetween(removeBetween(s.text, "<!--", "-->"), "<", ">")
	text = strings.Join(strings.FieldsFunc(text, isSpace), " ")
	for _, entity := range [][2]string{{"&lt;", "<"}, {"&gt;", ">"}, {"&#39;", "'"}, {"&#34;", `"`}, {"&quot;", `"`}, {"&amp;", "&"}} {
		text = strings.ReplaceAll(text, entity[0], entity[1])
	}
	return s.with(text), r.spend(len(s.text) / bytesPerStep)
}

func removeBetween(s, open, end string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, open)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(before)
		s = after
	}
}

func urlEncodeFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("urlencode", 0); err != nil {
		return nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		s, err := r.str(v)
		return r.percentEncode(s, "/"), err
	}
	b := textBuilder{run: r}
	for i, e := range d.entries {
		if i > 0 {
			b.addControl("&")
		}
		for j, part := range []Value{e.key, e.value} {
			s, err := r.str(part)
			if err != nil {
				return nil, err
			}
			if j > 0 {
				b.addControl("=")
			}
			s = r.percentEncode(s, " ")
			s.text = strings.ReplaceAll(s.text, " ", "+")
			b.add(s)
		}
	}
	return b.str(), r.over
}

func (r *run) percentEncode(s Str, keep string) Str {
	return s.mapRunes(r, func(_ int, c rune) string {
		if c < utf8.RuneSelf && (isDigit(byte(c)) || c|0x20 >= 'a' && c|0x20 <= 'z') || strings.ContainsRune("_.-~"+keep, c) {
			return string(c)
		}
		var out strings.Builder
		for _, b := range []byte(string(c)) {
			out.WriteByte('%')
			out.WriteByte("0123456789ABCDEF"[b>>4])
			out.WriteByte("0123456789ABCDEF"[b&15])
		}
		return out.String()
	})
}
