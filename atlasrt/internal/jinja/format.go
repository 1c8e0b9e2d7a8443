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
