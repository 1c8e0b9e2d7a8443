package jsontree

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits bound a document.
type Limits struct {
	Depth int // nesting of arrays and objects; default 64
	Nodes int // values and keys; default 250,000
}

// Decode reads one JSON document. It refuses duplicate keys, invalid UTF-8 and NaN. An escaped surrogate without its other half becomes
// U+FFFD. A number may be larger than any float. Errors name the byte.
func Decode(document []byte, limits Limits) (Value, error) {
	if limits.Depth == 0 {
		limits.Depth = 64
	}
	if limits.Nodes == 0 {
		limits.Nodes = 250_000
	}
	d := &reader{source: document, depth: limits.Depth, nodes: limits.Nodes}
	d.space()
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.space(); d.pos < len(d.source) {
		return nil, d.failf("text after the end of the JSON document")
	}
	return v, nil
}

type reader struct {
	source       []byte
	pos          int
	depth, nodes int // left
}

func (d *reader) failf(format string, values ...any) error {
	return fmt.Errorf("JSON at byte %d: %s", d.pos, fmt.Sprintf(format, values...))
}

func (d *reader) space() {
	for d.pos < len(d.source) {
		switch d.source[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end.
func (d *reader) peek() byte {
	if d.pos < len(d.source) {
		return d.source[d.pos]
	}
	return 0
}

func (d *reader) literal(text string, v Value) (Value, error) {
	if len(d.source)-d.pos < len(text) || string(d.source[d.pos:d.pos+len(text)]) != text {
		return nil, d.failf("unexpected character")
	}
	d.pos += len(text)
	return v, nil
}

func (d *reader) value() (Value, error) {
	if d.nodes--; d.nodes < 0 {
		return nil, d.failf("the document has too many values")
	}
	switch c := d.peek(); {
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case c == '"':
		s, err := d.string()
		return String(s), err
	case c == 't':
		return d.literal("true", Bool(true))
	case c == 'f':
		return d.literal("false", Bool(false))
	case c == 'n':
		return d.literal("null", Null{})
	case c == '-' || isDigit(c):
		return d.number()
	case d.pos == len(d.source):
		return nil, d.failf("the document ends too early")
	}
	return nil, d.failf("unexpected character")
}

// enter counts one level of nesting and skips the opening bracket.
func (d *reader) enter() error {
	if d.depth--; d.depth < 0 {
		return d.failf("the document nests too deep")
	}
	d.pos++
	d.space()
	return nil
}

// more skips the comma before another element, or the closing bracket, and reports which it was.
func (d *reader) more(end byte) (bool, error) {
	d.space()
	switch d.peek() {
	case ',':
		d.pos++
		d.space()
		return true, nil
	case end:
		d.pos++
		d.depth++
		return false, nil
	}
	return false, d.failf("expected ',' or '%c'", end)
}

func (d *reader) array() (Value, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	l := Array{}
	if d.peek() == ']' {
		d.pos++
		d.depth++
		return l, nil
	}
	for {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		l = append(l, v)
		if more, err := d.more(']'); !more {
			return l, err
		}
	}
}

func (d *reader) object() (Value, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	object := NewObject()
	if d.peek() == '}' {
		d.pos++
		d.depth++
		return object, nil
	}
	for {
		if d.peek() != '"' {
			return nil, d.failf("expected a string as key")
		}
		key, err := d.string()
		if err != nil {
			return nil, err
		}
		if object.find(key) >= 0 {
			return nil, d.failf("duplicate key %q", key)
		}
		if d.nodes--; d.nodes < 0 {
			return nil, d.failf("the document has too many values")
		}
		if d.space(); d.peek() != ':' {
			return nil, d.failf("expected ':'")
		}
		d.pos++
		d.space()
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		object.Set(key, v)
		if more, err := d.more('}'); !more {
			return object, err
		}
	}
}

func (d *reader) number() (Value, error) {
	start := d.pos
	digits := func() int {
		n := 0
		for isDigit(d.peek()) {
			d.pos++
			n++
		}
		return n
	}
	if d.peek() == '-' {
		d.pos++
	}
	zero := d.peek() == '0'
	if n := digits(); n == 0 || zero && n > 1 {
		return nil, d.failf("bad number")
	}
	if d.peek() == '.' {
		d.pos++
		if digits() == 0 {
			return nil, d.failf("bad number")
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.pos++
		if c := d.peek(); c == '+' || c == '-' {
			d.pos++
		}
		if digits() == 0 {
			return nil, d.failf("bad number")
		}
	}
	return Number(d.source[start:d.pos]), nil
}

func (d *reader) string() (string, error) {
	d.pos++
	start := d.pos
	var out []byte // nil as long as there was no escape: the text is then a part of the source
	for {
		if d.pos == len(d.source) {
			return "", d.failf("the document ends within a string")
		}
		c := d.source[d.pos]
		switch {
		case c == '"':
			d.pos++
			if out == nil {
				return string(d.source[start : d.pos-1]), nil
			}
			return string(append(out, d.source[start:d.pos-1]...)), nil
		case c < ' ':
			return "", d.failf("control character in a string")
		case c == '\\':
			if out == nil {
				out = make([]byte, 0, d.stringBytes(start))
			}
			out = append(out, d.source[start:d.pos]...)
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			start = d.pos
		case c < utf8.RuneSelf:
			d.pos++
		default:
			r, size := utf8.DecodeRune(d.source[d.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", d.failf("invalid UTF-8")
			}
			d.pos += size
		}
	}
}

// stringBytes is how many bytes the string that began at start takes in the source. That is room enough for its text, since no escape is
// shorter than the character it stands for.
func (d *reader) stringBytes(start int) int {
	for at := d.pos; at < len(d.source); at++ {
		switch d.source[at] {
		case '\\':
			at++
		case '"':
			return at - start
		}
	}
	return len(d.source) - start
}

// escape reads a backslash and what follows it.
func (d *reader) escape() (rune, error) {
	d.pos++
	c := d.peek()
	d.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, err := d.hex()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if d.pos+1 < len(d.source) && d.source[d.pos] == '\\' && d.source[d.pos+1] == 'u' {
			back := d.pos
			d.pos += 2
			low, err := d.hex()
			if err != nil {
				return 0, err
			}
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
			d.pos = back
		}
		return utf8.RuneError, nil
	}
	d.pos--
	return 0, d.failf("bad escape")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (d *reader) hex() (rune, error) {
	if len(d.source)-d.pos < 4 {
		return 0, d.failf("bad escape")
	}
	code, err := strconv.ParseUint(string(d.source[d.pos:d.pos+4]), 16, 16)
	if err != nil {
		return 0, d.failf("bad escape")
	}
	d.pos += 4
	return rune(code), nil
}
