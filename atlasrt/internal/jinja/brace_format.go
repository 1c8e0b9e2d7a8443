package jinja

import (
	"strings"
	"unicode/utf8"
)

// braceFormat is s.format(arguments).
func (r *run) braceFormat(s Str, a args) (Value, error) {
	f := &braceFormatter{run: r, arguments: a}
	out, err := f.expand(s, 2)
	if err != nil {
		return nil, err
	}
	out.markup = s.markup
	return out, r.over
}

type braceFormatter struct {
	run       *run
	arguments args
	automatic int  // the next number of {}
	numbered  bool // {0} was used
}

// expand replaces the fields of a format; depth says how many levels of fields within fields are left.
func (f *braceFormatter) expand(s Str, depth int) (Str, error) {
	if depth == 0 {
		return Str{}, failf("Max string recursion exceeded")
	}
	out := textBuilder{run: f.run}
	text := s.text
	for pos := 0; pos < len(text); {
		i := strings.IndexAny(text[pos:], "{}")
		if i < 0 {
			out.add(s.slice(pos, len(text)))
			break
		}
		out.add(s.slice(pos, pos+i))
		pos += i
		if strings.HasPrefix(text[pos+1:], text[pos:pos+1]) {
			out.add(s.slice(pos, pos+1))
			pos += 2
			continue
		}
		if text[pos] == '}' {
			return Str{}, failf("Single '}' encountered in format string")
		}
		end := fieldEnd(text, pos)
		if end < 0 {
			if pos+1 == len(text) {
				return Str{}, failf("Single '{' encountered in format string")
			}
			return Str{}, failf("expected '}' before end of string")
		}
		if err := f.field(&out, s.slice(pos+1, end), depth); err != nil {
			return Str{}, err
		}
		pos = end + 1
	}
	return out.str(), f.run.over
}

// fieldEnd is the position of the bracket that closes the one at open, -1 where there is none.
func fieldEnd(text string, open int) int {
	depth := 0
	for i := open; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// field writes one replacement field: name!conversion:spec.
func (f *braceFormatter) field(out *textBuilder, field Str, depth int) error {
	if err := f.run.spend(1); err != nil {
		return err
	}
	text := field.text
	end := strings.IndexAny(text, "!:")
	if end < 0 {
		end = len(text)
	}
	v, err := f.lookup(text[:end])
	if err != nil {
		return err
	}
	rest := field.slice(end, len(text))
	if strings.HasPrefix(rest.text, "!") {
		if len(rest.text) < 2 || len(rest.text) > 2 && rest.text[2] != ':' {
			return failf("expected ':' after conversion specifier")
		}
		if v, err = f.convert(v, rest.text[1]); err != nil {
			return err
		}
		rest = rest.slice(2, len(rest.text))
	}
	if rest.text != "" {
		if rest, err = f.expand(rest.slice(1, len(rest.text)), depth-1); err != nil {
			return err
		}
	}
	return f.run.formatValue(out, v, rest)
}

func (f *braceFormatter) convert(v Value, conversion byte) (Value, error) {
	switch conversion {
	case 's':
		return f.run.str(v)
	case 'r', 'a':
		return f.run.repr(v)
	}
	return nil, failf("Unknown conversion specifier %c", conversion)
}

// lookup resolves a field name such as 0, name, name.attribute or name[key].
func (f *braceFormatter) lookup(path string) (Value, error) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	first, rest := path[:end], path[end:]
	v, err := f.argument(first)
	for err == nil && rest != "" {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			v, err = f.run.attribute(v, Control(rest[1:1+end]))
			rest = rest[1+end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			return nil, failf("Missing ']' in format string")
		}
		var key Value = Control(rest[1:end])
		if n, size := scanCount(rest, 1); size == end && end > 1 {
			key = Int(n)
		}
		v, err = f.run.item(v, key)
		rest = rest[end+1:]
	}
	return v, err
}

func (f *braceFormatter) argument(id string) (Value, error) {
	n, size := scanCount(id, 0)
	switch {
	case id == "":
		if f.numbered {
			return nil, failf("cannot switch from manual field specification to automatic field numbering")
		}
		n = f.automatic
		f.automatic++
	case size == len(id):
		if f.automatic > 0 {
			return nil, failf("cannot switch from manual field specification to automatic field numbering")
		}
		f.numbered = true
	default:
		for _, k := range f.arguments.named {
			if k.id == id {
				return k.value, nil
			}
		}
		return nil, failf("%s", quote(id))
	}
	if n >= len(f.arguments.positional) {
		return nil, failf("Replacement index %d out of range for positional args tuple", n)
	}
	return f.arguments.positional[n], nil
}

// formatValue is Python's format(v, spec).
func (r *run) formatValue(out *textBuilder, v Value, layout Str) error {
	if layout.text == "" {
		s, err := r.str(v)
		out.add(s)
		return err
	}
	s, err := parseSpec(layout)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case Str:
		if s.kind != 0 && s.kind != 's' {
			return failf("Unknown format code '%c' for object of type 'str'", s.kind)
		}
		if s.sign != 0 {
			return failf("Sign not allowed in string format specifier")
		}
		if s.align == '=' {
			return failf("'=' alignment not allowed in string format specifier")
		}
		r.writeText(out, s, v, '<')
		return r.over
	case Int, *Big, Bool, Float:
		return r.formatNumber(out, v, s)
	}
	return failf("unsupported format string passed to %s.__format__", v.typeName())
}

func (r *run) formatNumber(out *textBuilder, v Value, s spec) error {
	f, isFloat := v.(Float)
	if !isFloat && (s.kind == 0 || strings.IndexByte("dxXobcn", s.kind) >= 0) {
		if s.precision >= 0 {
			return failf("Precision not allowed in integer format specifier")
		}
		n, _ := bigOf(v)
		if s.kind == 'c' {
			if !n.IsInt64() || n.Int64() < 0 || n.Int64() > utf8.MaxRune {
				return failf("%%c arg not in range(0x110000)")
			}
			r.writeText(out, s, Control(string(rune(n.Int64()))), '<')
			return r.over
		}
		return r.writeInteger(out, s, n)
	}
	if s.kind != 0 && strings.IndexByte("eEfFgGn%", s.kind) < 0 {
		return failf("Unknown format code '%c' for object of type '%s'", s.kind, v.typeName())
	}
	if !isFloat {
		x, _ := floatOf(v)
		f = Float(x)
	}
	switch {
	case s.kind == 0 && s.precision < 0:
		text := floatText(float64(f))
		negative := strings.HasPrefix(text, "-")
		return r.writeNumber(out, s, negative, "", group(strings.TrimPrefix(text, "-"), s))
	case s.kind == 0 || s.kind == 'n':
		s.kind = 'g'
	}
	if s.precision < 0 {
		s.precision = 6
	}
	return r.writeFloat(out, s, float64(f))
}

// parseSpec reads [[fill]align][sign][#][0][width][grouping][.precision][kind].
func parseSpec(layout Str) (spec, error) {
	s := spec{precision: -1, fill: Control(" ")}
	text := layout.text
	pos := 0
	_, size := utf8.DecodeRuneInString(text)
	if len(text) > size && strings.IndexByte("<>^=", text[size]) >= 0 {
		s.fill, s.align, pos = layout.slice(0, size), text[size], size+1
	} else if strings.IndexByte("<>^=", text[0]) >= 0 {
		s.align, pos = text[0], 1
	}
	has := func(set string) bool { return pos < len(text) && strings.IndexByte(set, text[pos]) >= 0 }
	if has("+- ") {
		if text[pos] != '-' {
			s.sign = text[pos]
		}
		pos++
	}
	if has("#") {
		s.alternate = true
		pos++
	}
	if has("0") {
		if s.zero = s.align == 0; s.fill.text == " " {
			s.fill = Control("0")
		}
		pos++
	}
	s.width, pos = scanCount(text, pos)
	if has(",_") {
		s.grouping = text[pos]
		pos++
	}
	if has(".") {
		start := pos + 1
		if s.precision, pos = scanCount(text, start); pos == start {
			return s, failf("Format specifier missing precision")
		}
	}
	if pos < len(text) {
		s.kind = text[pos]
		pos++
	}
	if pos < len(text) {
		return s, failf("Invalid format specifier")
	}
	return s, nil
}
