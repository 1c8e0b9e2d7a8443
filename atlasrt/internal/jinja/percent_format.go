package jinja

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// percentFormat is s % value, with the conversions d, i, s, r, f, e and g.
func (r *run) percentFormat(s Str, value Value) (Value, error) {
	f := &percentFormatter{run: r, format: s, value: value, out: textBuilder{run: r}}
	if t, ok := value.(*Tuple); ok {
		f.items = t.items
	} else {
		f.items = []Value{value}
		f.isMapping = hasItems(value)
	}
	if err := f.expand(); err != nil {
		return nil, err
	}
	if f.used < len(f.items) && !f.isMapping {
		return nil, failf("not all arguments converted during string formatting")
	}
	out := f.out.str()
	out.markup = s.markup
	return out, r.over
}

// hasItems says whether Python takes the right side of % for a mapping, which may stay unused.
func hasItems(v Value) bool {
	switch v.(type) {
	case *Dict, *List, *rangeValue:
		return true
	}
	return false
}

type percentFormatter struct {
	run       *run
	format    Str
	value     Value
	items     []Value
	used      int
	isMapping bool
	out       textBuilder
}

func (f *percentFormatter) next() (Value, error) {
	if f.used >= len(f.items) {
		return nil, failf("not enough arguments for format string")
	}
	f.used++
	return f.items[f.used-1], nil
}

func (f *percentFormatter) expand() error {
	text := f.format.text
	for pos := 0; pos < len(text); {
		i := strings.IndexByte(text[pos:], '%')
		if i < 0 {
			f.out.add(f.format.slice(pos, len(text)))
			return nil
		}
		f.out.add(f.format.slice(pos, pos+i))
		next, err := f.conversion(pos + i + 1)
		if err != nil {
			return err
		}
		if err := f.run.spend(1); err != nil {
			return err
		}
		pos = next
	}
	return nil
}

// conversion writes the value of the conversion that starts at pos, behind the percent sign, and returns its end.
func (f *percentFormatter) conversion(pos int) (int, error) {
	text := f.format.text
	var value Value
	var err error
	if strings.HasPrefix(text[pos:], "(") {
		end := strings.IndexByte(text[pos:], ')')
		d, ok := f.value.(*Dict)
		if !ok {
			return 0, failf("format requires a mapping")
		}
		if end < 0 {
			return 0, failf("incomplete format key")
		}
		key := text[pos+1 : pos+end]
		if value, ok = d.Get(key); !ok {
			return 0, failf("%s", quote(key))
		}
		f.used = len(f.items)
		pos += end + 1
	}
	s := spec{precision: -1, fill: Control(" ")}
	for ; pos < len(text) && strings.IndexByte("0- +", text[pos]) >= 0; pos++ {
		switch text[pos] {
		case '0':
			s.zero = true
		case '-':
			s.align = '<'
		case '+':
			s.sign = '+'
		case ' ':
			if s.sign == 0 {
				s.sign = ' '
			}
		}
	}
	s.width, pos = scanCount(text, pos)
	if pos < len(text) && text[pos] == '.' {
		s.precision, pos = scanCount(text, pos+1)
	}
	if pos >= len(text) {
		return 0, failf("incomplete format")
	}
	c, size := utf8.DecodeRuneInString(text[pos:])
	if c == '%' {
		f.out.addControl("%")
		return pos + 1, nil
	}
	if value == nil {
		if value, err = f.next(); err != nil {
			return 0, err
		}
	}
	if c >= utf8.RuneSelf || strings.IndexByte("disrfeg", byte(c)) < 0 {
		return 0, failf("unsupported format character '%c' (0x%x) at index %d", c, c, utf8.RuneCountInString(text[:pos]))
	}
	s.kind = byte(c)
	return pos + size, f.write(s, value)
}

func (f *percentFormatter) write(s spec, v Value) error {
	if u, ok := v.(*undefined); ok && s.kind != 's' && s.kind != 'r' {
		return u.failure()
	}
	switch s.kind {
	case 's', 'r':
		show := f.run.str
		if s.kind == 'r' {
			show = f.run.repr
		}
		text, err := show(v)
		if err != nil {
			return err
		}
		f.run.writeText(&f.out, s, text, '>')
		return f.run.over
	case 'd', 'i':
		if s.precision >= 0 {
			return failf("a precision of %%%c is not supported", s.kind)
		}
		if x, ok := v.(Float); ok {
			n, err := truncate(float64(x))
			if err != nil {
				return err
			}
			v = n
		}
		n, ok := bigOf(v)
		if !ok {
			return failf("%%%c format: a real number is required, not %s", s.kind, v.typeName())
		}
		return f.run.writeInteger(&f.out, s, n)
	}
	x, ok := floatOf(v)
	if !ok {
		return failf("must be real number, not %s", v.typeName())
	}
	return f.run.writeFloat(&f.out, s, x)
}

// truncate is the integer part of a float.
func truncate(f float64) (Value, error) {
	switch {
	case math.IsNaN(f):
		return nil, failf("cannot convert float NaN to integer")
	case math.IsInf(f, 0):
		return nil, failf("cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(f).Int(nil)
	return integer(n), nil
}
