package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is how one value is to be written: the part of %d and {:d} that both share.
type spec struct {
	fill      Str
	align     byte // '<', '>', '^', '=' or 0
	sign      byte // '+', ' ' or 0
	alternate bool
	zero      bool
	width     int
	grouping  byte // ',', '_' or 0
	precision int  // -1 where absent
	kind      byte
}

// percentFormat is s % value.
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
	for ; pos < len(text) && strings.IndexByte("#0- +", text[pos]) >= 0; pos++ {
		switch text[pos] {
		case '#':
			s.alternate = true
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
	if s.width, pos, err = f.number(pos); err != nil {
		return 0, err
	}
	if s.width < 0 {
		s.align, s.width = '<', -s.width
	}
	if pos < len(text) && text[pos] == '.' {
		if s.precision, pos, err = f.number(pos + 1); err != nil {
			return 0, err
		}
		s.precision = max(s.precision, 0)
	}
	for pos < len(text) && strings.IndexByte("hlL", text[pos]) >= 0 {
		pos++
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
	if c >= utf8.RuneSelf || strings.IndexByte("diuoxXeEfFgGcrsa", byte(c)) < 0 {
		return 0, failf("unsupported format character '%c' (0x%x) at index %d", c, c, utf8.RuneCountInString(text[:pos]))
	}
	s.kind = byte(c)
	return pos + size, f.write(s, value)
}

// number reads digits or an asterisk, which takes the next value.
func (f *percentFormatter) number(pos int) (int, int, error) {
	text := f.format.text
	if pos < len(text) && text[pos] == '*' {
		v, err := f.next()
		if err != nil {
			return 0, 0, err
		}
		n, ok := smallOf(v)
		if !ok {
			return 0, 0, failf("* wants int")
		}
		return int(max(min(n, math.MaxInt32), -math.MaxInt32)), pos + 1, nil
	}
	n, end := scanCount(text, pos)
	return n, end, nil
}

// scanCount reads a decimal count, capped where no text could be that long.
func scanCount(text string, pos int) (int, int) {
	n := 0
	for ; pos < len(text) && isDigit(text[pos]); pos++ {
		n = min(n*10+int(text[pos]-'0'), math.MaxInt32)
	}
	return n, pos
}

func (f *percentFormatter) write(s spec, v Value) error {
	if u, ok := v.(*undefined); ok && strings.IndexByte("srac", s.kind) < 0 {
		return u.failure()
	}
	switch s.kind {
	case 's', 'r', 'a':
		show := f.run.repr
		if s.kind == 's' {
			show = f.run.str
		}
		text, err := show(v)
		if err != nil {
			return err
		}
		if s.kind != 's' {
			if q, ok := v.(Str); ok {
				text = q.with(quote(q.text))
			}
		}
		s.zero = false
		f.run.writeText(&f.out, s, text, '>')
		return f.run.over
	case 'c':
		if c, ok := v.(Str); ok && utf8.RuneCountInString(c.text) == 1 {
			f.run.writeText(&f.out, s, c, '>')
			return nil
		}
		if n, ok := smallOf(v); ok && n >= 0 && n <= utf8.MaxRune {
			f.run.writeText(&f.out, s, Control(string(rune(n))), '>')
			return nil
		}
		return failf("%%c requires int or char")
	case 'd', 'i', 'u':
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
		s.kind = 'd'
		return f.run.writeInteger(&f.out, s, n)
	case 'o', 'x', 'X':
		n, ok := bigOf(v)
		if !ok {
			return failf("%%%c format: an integer is required, not %s", s.kind, v.typeName())
		}
		return f.run.writeInteger(&f.out, s, n)
	}
	x, ok := floatOf(v)
	if !ok {
		return failf("must be real number, not %s", v.typeName())
	}
	if s.precision < 0 {
		s.precision = 6
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

// writeText writes text cut to the precision and padded to the width.
func (r *run) writeText(out *textBuilder, s spec, text Str, align byte) {
	size := utf8.RuneCountInString(text.text)
	if s.precision >= 0 && s.precision < size {
		text = text.slice(0, byteOffset(text.text, s.precision, size))
		size = s.precision
	}
	if s.align != 0 {
		align = s.align
	}
	missing := max(s.width-size, 0)
	left := 0
	switch align {
	case '>':
		left = missing
	case '^':
		left = missing / 2
	}
	out.addRepeated(s.fill, left)
	out.add(text)
	out.addRepeated(s.fill, missing-left)
}

// writeNumber writes sign, prefix and digits padded to the width.
func (r *run) writeNumber(out *textBuilder, s spec, negative bool, prefix, digits string) error {
	switch {
	case negative:
		prefix = "-" + prefix
	case s.sign != 0:
		prefix = string(s.sign) + prefix
	}
	missing := max(s.width-len(prefix)-len(digits), 0)
	if s.zero && s.align == 0 || s.align == '=' {
		fill := s.fill
		if s.align == 0 || s.zero && fill.text == " " {
			fill = Control("0")
		}
		if s.grouping != 0 && fill.text == "0" {
			if missing > r.maxText {
				r.exceed("text")
				return r.over
			}
			digits = groupZeros(digits, s, s.width-len(prefix))
			missing = 0
		}
		out.addControl(prefix)
		out.addRepeated(fill, missing)
		out.addControl(digits)
		return r.over
	}
	s.precision = -1
	r.writeText(out, s, Control(prefix+digits), '>')
	return r.over
}

func (r *run) writeInteger(out *textBuilder, s spec, n *big.Int) error {
	base, prefix := 10, ""
	switch s.kind {
	case 'x', 'X':
		base, prefix = 16, "0"+string(s.kind)
	case 'o':
		base, prefix = 8, "0o"
	case 'b':
		base, prefix = 2, "0b"
	}
	digits := new(big.Int).Abs(n).Text(base)
	if s.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !s.alternate {
		prefix = ""
	}
	if s.precision > len(digits) {
		if s.precision > r.maxText {
			r.exceed("text")
			return r.over
		}
		digits = strings.Repeat("0", s.precision-len(digits)) + digits
	}
	s.precision = -1
	return r.writeNumber(out, s, n.Sign() < 0, prefix, group(digits, s))
}

// writeFloat writes a float in the style e, f, g or %, in upper case for E, F and G.
func (r *run) writeFloat(out *textBuilder, s spec, f float64) error {
	negative := math.Signbit(f) && !math.IsNaN(f)
	digits := floatDigits(math.Abs(f), s, r.maxText)
	if digits == "" {
		r.exceed("text")
		return r.over
	}
	if !math.IsInf(f, 0) && !math.IsNaN(f) {
		digits = group(digits, s)
	}
	return r.writeNumber(out, s, negative, "", digits)
}

// floatDigits writes a float without sign; empty where the precision asks for more than limit digits.
func floatDigits(f float64, s spec, limit int) string {
	if s.precision > limit {
		return ""
	}
	kind := s.kind | 0x20
	text := ""
	switch {
	case math.IsNaN(f):
		text = "nan"
	case math.IsInf(f, 0):
		text = "inf"
	case s.kind == '%':
		text = strconv.FormatFloat(f*100, 'f', s.precision, 64)
	case kind == 'g':
		text = generalFloat(f, max(s.precision, 1), s.alternate)
	default:
		text = strconv.FormatFloat(f, kind, s.precision, 64)
		if s.alternate && s.precision == 0 && kind == 'f' {
			text += "."
		}
	}
	if s.kind == '%' {
		return text + "%"
	}
	if s.kind >= 'A' && s.kind <= 'Z' {
		return strings.ToUpper(text)
	}
	return text
}

// generalFloat is the style g: the shorter of e and f for this many significant digits.
func generalFloat(f float64, precision int, alternate bool) string {
	scientific := strconv.FormatFloat(f, 'e', precision-1, 64)
	exponent, _ := strconv.Atoi(scientific[strings.IndexByte(scientific, 'e')+1:])
	trim := func(s string) string {
		if alternate || !strings.Contains(s, ".") {
			return s
		}
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if exponent < -4 || exponent >= precision {
		mantissa, power, _ := strings.Cut(scientific, "e")
		return trim(mantissa) + "e" + power
	}
	return trim(strconv.FormatFloat(f, 'f', precision-1-exponent, 64))
}

// group puts separators between groups of digits of the integer part.
func group(digits string, s spec) string {
	if s.grouping == 0 {
		return digits
	}
	size := 3
	if s.kind == 'x' || s.kind == 'X' || s.kind == 'o' || s.kind == 'b' {
		size = 4
	}
	whole, rest := digits, ""
	if i := strings.IndexFunc(digits, func(c rune) bool { return c == '.' || c == 'e' || c == 'E' || c == '%' }); i >= 0 && size == 3 {
		whole, rest = digits[:i], digits[i:]
	}
	var out []byte
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%size == 0 {
			out = append(out, s.grouping)
		}
		out = append(out, whole[i])
	}
	return string(out) + rest
}

// groupZeros pads grouped digits with grouped zeros to a width.
func groupZeros(digits string, s spec, width int) string {
	plain := strings.ReplaceAll(digits, string(s.grouping), "")
	for len(digits) < width {
		plain = "0" + plain
		if next := group(plain, s); len(next) > width && next[1] == s.grouping {
			return next
		} else {
			digits = next
		}
	}
	return digits
}
