package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// decimal is a number: 0.digits · 10^exponent.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; "" is zero
	exponent int
}

// mostDigits bounds the numbers of a schema, before and behind the point.
const mostDigits = 400

// parseDecimal reads a JSON number; false: it has too many digits.
func parseDecimal(n jsontree.Number) (decimal, bool) {
	text := string(n)
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	exponent := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.Atoi(text[i+1:])
		if err != nil {
			return d, strings.Trim(text[:i], "0.") == ""
		}
		text, exponent = text[:i], e
	}
	before, behind, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(before+behind, "0")
	exponent += len(before) - (len(before) + len(behind) - len(digits))
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return decimal{}, true
	}
	d.digits, d.exponent = digits, exponent
	return d, exponent <= mostDigits && len(digits)-exponent <= mostDigits
}

// decimal is a number of the schema.
func (c *compiler) decimal(keyword string, n jsontree.Number) (decimal, bool) {
	d, ok := parseDecimal(n)
	if !ok {
		c.unsupported(keyword, "the number has more than "+strconv.Itoa(mostDigits)+" digits before or behind the point")
	}
	return d, ok
}

// before is the part before the point, "0" where there is none.
func (d decimal) before() string {
	if d.exponent <= 0 {
		return "0"
	}
	return d.digits[:min(d.exponent, len(d.digits))] + strings.Repeat("0", max(d.exponent-len(d.digits), 0))
}

// behind is the part behind the point, "" where there is none.
func (d decimal) behind() string {
	if d.exponent >= len(d.digits) {
		return ""
	}
	return strings.Repeat("0", max(-d.exponent, 0)) + d.digits[max(d.exponent, 0):]
}

func (d decimal) sign() string {
	if d.negative {
		return "-"
	}
	return ""
}

// plain is the number without an exponent.
func (d decimal) plain() string {
	text := d.sign() + d.before()
	if f := d.behind(); f != "" {
		text += "." + f
	}
	return text
}

// scientific is the number as Python writes large and small floats; false: it is neither.
func (d decimal) scientific() (string, bool) {
	e := d.exponent - 1
	if d.digits == "" || e > -5 && e < 16 || len(d.digits) > 17 {
		return "", false
	}
	text := d.sign() + d.digits[:1]
	if len(d.digits) > 1 {
		text += "." + d.digits[1:]
	}
	sign := "+"
	if e < 0 {
		sign, e = "-", -e
	}
	if e < 10 {
		sign += "0"
	}
	return text + "e" + sign + strconv.Itoa(e), true
}

func (d decimal) compare(e decimal) int {
	if d.negative != e.negative {
		if d.negative {
			return -1
		}
		return 1
	}
	order := cmp.Compare(d.exponent, e.exponent)
	switch {
	case d.digits == "" || e.digits == "":
		order = cmp.Compare(len(d.digits), len(e.digits))
	case order == 0:
		order = strings.Compare(d.digits, e.digits)
	}
	if d.negative {
		return -order
	}
	return order
}

func uniqueDecimals(list []decimal) []decimal {
	slices.SortFunc(list, decimal.compare)
	return slices.Compact(list)
}

// appendCanonical appends a value as a text that equal values share.
func appendCanonical(b []byte, v jsontree.Value) []byte {
	switch v := v.(type) {
	case jsontree.Number:
		if d, ok := parseDecimal(v); ok {
			return append(b, d.sign()+d.digits+"e"+strconv.Itoa(d.exponent)...)
		}
	case jsontree.Array:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendCanonical(b, item), ',')
		}
		return append(b, ']')
	case *jsontree.Object:
		members := make([]string, 0, v.Len())
		for name, member := range v.All() {
			members = append(members, string(appendCanonical(append(jsontree.AppendString(nil, name), ':'), member)))
		}
		slices.Sort(members)
		return append(b, "{"+strings.Join(members, ",")+"}"...)
	}
	return jsontree.Append(b, v)
}

func quote(s string) string { return strconv.QuoteToGraphic(s) }
