package jinja

import (
	"strings"
	"unicode/utf8"
)

// braceFormat is s.format(arguments). A field is a position or a name, !s or !r, and a layout; there are no attributes and no fields
// within fields.
func (r *run) braceFormat(s Str, a args) (Value, error) {
	f := &braceFormatter{run: r, arguments: a}
	out := textBuilder{run: r}
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
		end := strings.IndexByte(text[pos:], '}')
		switch {
		case text[pos] == '}':
			return nil, failf("Single '}' encountered in format string")
		case pos+1 == len(text):
			return nil, failf("Single '{' encountered in format string")
		case end < 0:
			return nil, failf("expected '}' before end of string")
		}
		if err := f.field(&out, s.slice(pos+1, pos+end)); err != nil {
			return nil, err
		}
		pos += end + 1
	}
	result := out.str()
	result.markup = s.markup
	return result, r.over
}

type braceFormatter struct {
	run       *run
	arguments args
	automatic int  // the next number of {}
	numbered  bool // {0} was used
}

// field writes one replacement field: name!conversion:layout.
func (f *braceFormatter) field(out *textBuilder, field Str) error {
	if err := f.run.spend(1); err != nil {
		return err
	}
	end := strings.IndexAny(field.text, "!:")
	if end < 0 {
		end = len(field.text)
	}
	v, err := f.argument(field.text[:end])
	if err != nil {
		return err
	}
	rest := field.slice(end, len(field.text))
	if strings.HasPrefix(rest.text, "!") {
		if len(rest.text) < 2 || len(rest.text) > 2 && rest.text[2] != ':' {
			return failf("expected ':' after conversion specifier")
		}
		switch rest.text[1] {
		case 's':
			v, err = f.run.str(v)
		case 'r':
			v, err = f.run.repr(v)
		default:
			return failf("Unknown conversion specifier %c", rest.text[1])
		}
		if err != nil {
			return err
		}
		rest = rest.slice(2, len(rest.text))
	}
	if rest.text != "" {
		rest = rest.slice(1, len(rest.text)) // the colon
	}
	return f.run.formatValue(out, v, rest)
}

// argument is the one that a field names.
func (f *braceFormatter) argument(id string) (Value, error) {
	if strings.ContainsAny(id, ".[{") {
		return nil, failf("the field %s is not supported (give format() the value itself)", quote(id))
	}
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

// formatValue is Python's format(v, layout).
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
		r.writeText(out, s, v, '<')
		return r.over
	case Int, *Big, Bool, Float:
		return r.formatNumber(out, v, s)
	}
	return failf("unsupported format string passed to %s.__format__", v.typeName())
}

func (r *run) formatNumber(out *textBuilder, v Value, s spec) error {
	n, isInteger := bigOf(v)
	x, _ := floatOf(v)
	switch {
	case s.kind == 'f' || s.kind == 'e' || s.kind == 'g':
		return r.writeFloat(out, s, x)
	case s.kind == 's' || s.kind == 'd' && !isInteger:
		return failf("Unknown format code '%c' for object of type '%s'", s.kind, v.typeName())
	case isInteger && s.precision >= 0:
		return failf("Precision not allowed in integer format specifier")
	case isInteger:
		return r.writeInteger(out, s, n)
	case s.precision >= 0:
		return failf("a precision without f, e or g is not supported")
	}
	digits, negative := strings.CutPrefix(floatText(x), "-")
	return r.writeNumber(out, s, negative, digits)
}

// parseSpec reads [[fill]align][sign][0][width][.precision][kind].
func parseSpec(layout Str) (spec, error) {
	s := spec{precision: -1, fill: Control(" ")}
	text := layout.text
	pos := 0
	_, size := utf8.DecodeRuneInString(text)
	if len(text) > size && strings.IndexByte("<>^", text[size]) >= 0 {
		s.fill, s.align, pos = layout.slice(0, size), text[size], size+1
	} else if strings.IndexByte("<>^", text[0]) >= 0 {
		s.align, pos = text[0], 1
	}
	has := func(set string) bool { return pos < len(text) && strings.IndexByte(set, text[pos]) >= 0 }
	if has("+- ") {
		if text[pos] != '-' {
			s.sign = text[pos]
		}
		pos++
	}
	if has("0") {
		if s.zero = s.align == 0; s.fill.text == " " {
			s.fill = Control("0")
		}
		pos++
	}
	s.width, pos = scanCount(text, pos)
	if has(".") {
		start := pos + 1
		if s.precision, pos = scanCount(text, start); pos == start {
			return s, failf("Format specifier missing precision")
		}
	}
	if has("sdfeg") {
		s.kind = text[pos]
		pos++
	}
	if pos < len(text) {
		return s, failf("the format specifier %s is not supported", quote(text))
	}
	return s, nil
}
