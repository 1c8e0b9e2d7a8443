package jsontree

import (
	"math"
	"strconv"
	"strings"
)

// Separators stand between the parts of arrays and objects.
type Separators struct {
	Comma string // between items and between members
	Colon string // between a key and its value
}

// Separators of Python's json.dumps.
var (
	Compact = Separators{",", ":"}   // with separators=(",", ":")
	Spaced  = Separators{", ", ": "} // by default
)

// AppendDumps appends a value as Python's json.dumps(json.loads(text), ensure_ascii=False) writes it. Numbers are written as Python's: 1E5 as
// 100000.0, -0 as 0, 1e400 as Infinity.
func AppendDumps(b []byte, v Value, s Separators) []byte {
	switch v := v.(type) {
	case Number:
		return appendNumber(b, v)
	case Array:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, s.Comma...)
			}
			b = AppendDumps(b, item, s)
		}
		return append(b, ']')
	case *Object:
		b = append(b, '{')
		first := true
		for key, value := range v.All() {
			if !first {
				b = append(b, s.Comma...)
			}
			first = false
			b = append(AppendString(b, key), s.Colon...)
			b = AppendDumps(b, value, s)
		}
		return append(b, '}')
	}
	return Append(b, v)
}

func appendNumber(b []byte, n Number) []byte {
	if n == "-0" {
		return append(b, '0')
	}
	if n.IsInteger() {
		return append(b, n...)
	}
	switch f, finite := n.Float(); {
	case finite:
		return append(b, FloatText(f)...)
	case f < 0:
		return append(b, "-Infinity"...)
	}
	return append(b, "Infinity"...)
}

// FloatText is a finite float as Python's repr writes it: the shortest digits that give it back.
func FloatText(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
