package jinja

import (
	"strings"
	"unicode/utf8"
)

// textMethod is the method of a string, nil where strings have none of this name.
func textMethod(id string) func(r *run, s Str, a args) (Value, error) {
	switch id {
	case "strip", "lstrip", "rstrip":
		return func(_ *run, s Str, a args) (Value, error) { return stripMethod(id, s, a) }
	case "split", "rsplit":
		return func(r *run, s Str, a args) (Value, error) { return splitMethod(r, id, s, a) }
	case "splitlines":
		return splitLinesMethod
	case "startswith", "endswith":
		return func(_ *run, s Str, a args) (Value, error) { return affixMethod(id, s, a) }
	case "removeprefix", "removesuffix":
		return func(_ *run, s Str, a args) (Value, error) { return removeAffix(id, s, a) }
	case "replace":
		return replaceMethod
	case "join":
		return joinMethod
	case "find", "rfind", "index", "rindex", "count":
		return func(_ *run, s Str, a args) (Value, error) { return findMethod(id, s, a) }
	case "partition", "rpartition":
		return func(_ *run, s Str, a args) (Value, error) { return partitionMethod(id, s, a) }
	case "upper", "lower", "capitalize", "title":
		return func(r *run, s Str, a args) (Value, error) {
			if _, err := a.bind(id, 0); err != nil {
				return nil, err
			}
			return recase(r, id, s), r.over
		}
	case "ljust", "rjust":
		return func(r *run, s Str, a args) (Value, error) { return justifyMethod(r, id, s, a) }
	case "zfill":
		return zfillMethod
	case "format":
		return func(r *run, s Str, a args) (Value, error) { return r.braceFormat(s, a) }
	}
	if is := characterTest(id); is != nil {
		return func(r *run, s Str, a args) (Value, error) {
			if _, err := a.bind(id, 0); err != nil {
				return nil, err
			}
			return Bool(is(s.text)), nil
		}
	}
	return nil
}

func stripMethod(id string, s Str, a args) (Value, error) {
	values, err := a.bind(id, 0, "chars")
	if err != nil {
		return nil, err
	}
	return strip(s, values[0], id != "rstrip", id != "lstrip")
}

// strip removes white space, or the characters of chars, from the ends of s.
func strip(s Str, chars Value, left, right bool) (Value, error) {
	drop := isSpace
	switch c := chars.(type) {
	case nil, None:
	case Str:
		drop = func(r rune) bool { return strings.ContainsRune(c.text, r) }
	default:
		return nil, failf("strip arg must be None or str")
	}
	start, end := 0, len(s.text)
	if left {
		start = end - len(strings.TrimLeftFunc(s.text, drop))
	}
	if right {
		end = start + len(strings.TrimRightFunc(s.text[start:], drop))
	}
	return s.slice(start, end), nil
}

func splitMethod(r *run, id string, s Str, a args) (Value, error) {
	values, err := a.bind(id, 0, "sep", "maxsplit")
	if err != nil {
		return nil, err
	}
	limit, err := integerArgument(values[1], -1)
	if err != nil {
		return nil, err
	}
	var parts []Range
	switch separator := values[0].(type) {
	case nil, None:
		parts = splitSpace(s.text, limit, id == "rsplit")
	case Str:
		if separator.text == "" {
			return nil, failf("empty separator")
		}
		parts = splitOn(s.text, separator.text, limit, id == "rsplit")
	default:
		return nil, failf("must be str or None, not %s", separator.typeName())
	}
	if err := r.spend(len(parts) + len(s.text)/bytesPerStep); err != nil {
		return nil, err
	}
	items := make([]Value, len(parts))
	for i, p := range parts {
		items[i] = s.slice(p.Start, p.End)
	}
	return &List{items}, nil
}

// splitSpace splits at runs of white space, at most limit times where limit is not negative.
func splitSpace(s string, limit int, fromRight bool) []Range {
	var parts []Range
	if fromRight {
		end := len(s)
		for {
			end = len(strings.TrimRightFunc(s[:end], isSpace))
			if end == 0 {
				break
			}
			start := 0
			if limit < 0 || len(parts) < limit {
				start = strings.LastIndexFunc(s[:end], isSpace)
				if start >= 0 {
					_, size := utf8.DecodeRuneInString(s[start:])
					start += size
				} else {
					start = 0
				}
			}
			parts = append(parts, Range{start, end})
			end = start
		}
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
		return parts
	}
	pos := 0
	for {
		pos = len(s) - len(strings.TrimLeftFunc(s[pos:], isSpace))
		if pos == len(s) {
			return parts
		}
		end := len(s)
		if limit < 0 || len(parts) < limit {
			if i := strings.IndexFunc(s[pos:], isSpace); i >= 0 {
				end = pos + i
			}
		}
		parts = append(parts, Range{pos, end})
		pos = end
	}
}

func splitOn(s, separator string, limit int, fromRight bool) []Range {
	var parts []Range
	start, end := 0, len(s)
	for limit < 0 || len(parts) < limit {
		if fromRight {
			i := strings.LastIndex(s[:end], separator)
			if i < 0 {
				break
			}
			parts = append(parts, Range{i + len(separator), end})
			end = i
		} else {
			i := strings.Index(s[start:], separator)
			if i < 0 {
				break
			}
			parts = append(parts, Range{start, start + i})
			start += i + len(separator)
		}
	}
	parts = append(parts, Range{start, end})
	if fromRight {
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
	}
	return parts
}

// lineBreak is the size of the line break at the start of s, 0 where there is none.
func lineBreak(s string) int {
	c, size := utf8.DecodeRuneInString(s)
	switch c {
	case '\r':
		if strings.HasPrefix(s, "\r\n") {
			return 2
		}
		return 1
	case '\n', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return size
	}
	return 0
}

// lines splits a string as Python's splitlines.
func (s Str) lines(keepEnds bool) []Str {
	var lines []Str
	start := 0
	for i := 0; i < len(s.text); {
		size := lineBreak(s.text[i:])
		if size == 0 {
			_, width := utf8.DecodeRuneInString(s.text[i:])
			i += width
			continue
		}
		end := i
		if keepEnds {
			end += size
		}
		lines = append(lines, s.slice(start, end))
		i += size
		start = i
	}
	if start < len(s.text) {
		lines = append(lines, s.slice(start, len(s.text)))
	}
	return lines
}

func splitLinesMethod(r *run, s Str, a args) (Value, error) {
	values, err := a.bind("splitlines", 0, "keepends")
	if err != nil {
		return nil, err
	}
	lines := s.lines(values[0] != nil && truth(values[0]))
	items := make([]Value, len(lines))
	for i, l := range lines {
		items[i] = l
	}
	return &List{items}, r.spend(len(items) + len(s.text)/bytesPerStep)
}

// within resolves the bounds start and end, counted in characters, that many methods take; ok is false where they leave nothing.
func within(s Str, start, end Value) (part string, offset int, ok bool, err error) {
	if start == nil && end == nil {
		return s.text, 0, true, nil
	}
	size := utf8.RuneCountInString(s.text)
	from, to, err := 0, size, error(nil)
	if from, to, _, _, err = sliceBounds([3]Value{start, end, nil}, size); err != nil {
		return "", 0, false, err
	}
	if n, isInt := smallOf(start); start != nil && isInt && n > int64(size) || from > to {
		return "", 0, false, nil
	}
	low := byteOffset(s.text, from, size)
	high := byteOffset(s.text, to, size)
	return s.text[low:high], from, true, nil
}

func affixMethod(id string, s Str, a args) (Value, error) {
	values, err := a.bind(id, 1, "prefix", "start", "end")
	if err != nil {
		return nil, err
	}
	part, _, ok, err := within(s, values[1], values[2])
	if err != nil {
		return nil, err
	}
	has := strings.HasPrefix
	if id == "endswith" {
		has = strings.HasSuffix
	}
	candidates := []Value{values[0]}
	if t, isTuple := values[0].(*Tuple); isTuple {
		candidates = t.items
	}
	for _, c := range candidates {
		affix, isText := c.(Str)
		if !isText {
			return nil, failf("%s first arg must be str or a tuple of str, not %s", id, c.typeName())
		}
		if ok && has(part, affix.text) {
			return Bool(true), nil
		}
	}
	return Bool(false), nil
}

func removeAffix(id string, s Str, a args) (Value, error) {
	values, err := a.bind(id, 1, "prefix")
	if err != nil {
		return nil, err
	}
	affix, err := textArgument(values[0], Str{})
	if err != nil {
		return nil, err
	}
	if id == "removeprefix" && strings.HasPrefix(s.text, affix.text) {
		return s.slice(len(affix.text), len(s.text)), nil
	}
	if id == "removesuffix" && strings.HasSuffix(s.text, affix.text) {
		return s.slice(0, len(s.text)-len(affix.text)), nil
	}
	return s, nil
}

func findMethod(id string, s Str, a args) (Value, error) {
	values, err := a.bind(id, 1, "sub", "start", "end")
	if err != nil {
		return nil, err
	}
	sub, ok := values[0].(Str)
	if !ok {
		return nil, failf("must be str, not %s", values[0].typeName())
	}
	part, offset, inside, err := within(s, values[1], values[2])
	if err != nil {
		return nil, err
	}
	found := -1
	switch {
	case id == "count":
		if !inside {
			return Int(0), nil
		}
		return Int(strings.Count(part, sub.text)), nil
	case !inside:
	case strings.HasPrefix(id, "r"):
		found = strings.LastIndex(part, sub.text)
	default:
		found = strings.Index(part, sub.text)
	}
	if found < 0 {
		if strings.HasSuffix(id, "index") {
			return nil, failf("substring not found")
		}
		return Int(-1), nil
	}
	return Int(offset + utf8.RuneCountInString(part[:found])), nil
}

func partitionMethod(id string, s Str, a args) (Value, error) {
	values, err := a.bind(id, 1, "sep")
	if err != nil {
		return nil, err
	}
	sep, ok := values[0].(Str)
	if !ok {
		return nil, failf("must be str, not %s", values[0].typeName())
	}
	if sep.text == "" {
		return nil, failf("empty separator")
	}
	i := strings.Index(s.text, sep.text)
	if id == "rpartition" {
		i = strings.LastIndex(s.text, sep.text)
	}
	switch {
	case i >= 0:
		end := i + len(sep.text)
		return &Tuple{items: []Value{s.slice(0, i), s.slice(i, end), s.slice(end, len(s.text))}}, nil
	case id == "partition":
		return &Tuple{items: []Value{s, Str{}, Str{}}}, nil
	}
	return &Tuple{items: []Value{Str{}, Str{}, s}}, nil
}
