package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is how one value is to be written: the part of %5d and {:5d} that both share.
type spec struct {
	fill      Str
	align     byte // '<', '>', '^' or 0
	sign      byte // '+', ' ' or 0
	zero      bool // zeros between sign and digits fill the width
	width     int
	precision int // -1 where absent
	kind      byte
}

// writeText writes text cut to the precision and padded to the width; align counts where the spec has none.
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

// writeNumber writes sign and digits padded to the width.
func (r *run) writeNumber(out *textBuilder, s spec, negative bool, digits string) error {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case s.sign != 0:
		sign = string(s.sign)
	}
	if s.zero && s.align == 0 {
		out.addControl(sign)
		out.addRepeated(Control("0"), max(s.width-len(sign)-len(digits), 0))
		out.addControl(digits)
		return r.over
	}
	s.precision = -1
	r.writeText(out, s, Control(sign+digits), '>')
	return r.over
}

func (r *run) writeInteger(out *textBuilder, s spec, n *big.Int) error {
	return r.writeNumber(out, s, n.Sign() < 0, new(big.Int).Abs(n).String())
}

// writeFloat writes a float in the style e, f or g.
func (r *run) writeFloat(out *textBuilder, s spec, f float64) error {
	if s.precision < 0 {
		s.precision = 6
	}
	if s.precision > r.maxText {
		r.exceed("text")
		return r.over
	}
	digits := ""
	switch absolute := math.Abs(f); {
	case math.IsNaN(f):
		digits = "nan"
	case math.IsInf(f, 0):
		digits = "inf"
	case s.kind == 'g':
		digits = generalFloat(absolute, max(s.precision, 1))
	default:
		digits = strconv.FormatFloat(absolute, s.kind, s.precision, 64)
	}
	return r.writeNumber(out, s, math.Signbit(f) && !math.IsNaN(f), digits)
}

// generalFloat is the style g: the shorter of e and f for this many significant digits.
func generalFloat(f float64, precision int) string {
	scientific := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, power, _ := strings.Cut(scientific, "e")
	exponent, _ := strconv.Atoi(power)
	trim := func(s string) string {
		if !strings.Contains(s, ".") {
			return s
		}
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if exponent < -4 || exponent >= precision {
		return trim(mantissa) + "e" + power
	}
	return trim(strconv.FormatFloat(f, 'f', precision-1-exponent, 64))
}

// scanCount reads a decimal count, capped where no text could be that long.
func scanCount(text string, pos int) (int, int) {
	n := 0
	for ; pos < len(text) && isDigit(text[pos]); pos++ {
		n = min(n*10+int(text[pos]-'0'), math.MaxInt32)
	}
	return n, pos
}
