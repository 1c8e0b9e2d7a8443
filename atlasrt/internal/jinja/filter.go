package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// filterNamed is the filter of this name.
func filterNamed(id string) (filter, bool) {
	for _, lookup := range []func(string) filter{textFilter, sequenceFilter, valueFilter} {
		if f := lookup(id); f != nil {
			return f, true
		}
	}
	return nil, false
}

// valueFilter is a filter of numbers or of any value, nil where there is none of this name.
func valueFilter(id string) filter {
	switch id {
	case "default", "d":
		return defaultFilter
	case "tojson":
		return tojsonFilter
	case "int":
		return intFilter
	case "float":
		return floatFilter
	case "abs":
		return absFilter
	case "round":
		return roundFilter
	case "length", "count":
		return lengthFilter
	case "items":
		return itemsFilter
	}
	return nil
}

func defaultFilter(_ *run, v Value, a args) (Value, error) {
	values, err := a.bind("default", 0, "default_value", "boolean")
	if err != nil {
		return nil, err
	}
	_, missing := v.(*undefined)
	if !missing && (values[1] == nil || !truth(values[1]) || truth(v)) {
		return v, nil
	}
	if values[0] == nil {
		return Str{}, nil
	}
	return values[0], nil
}

func lengthFilter(_ *run, v Value, a args) (Value, error) {
	if _, err := a.bind("length", 0); err != nil {
		return nil, err
	}
	if l, ok := v.(*loopContext); ok {
		n, err := l.length()
		return Int(n), err
	}
	n, ok := length(v)
	if !ok {
		return nil, failf("object of type '%s' has no len()", v.typeName())
	}
	return Int(n), nil
}

func intFilter(_ *run, v Value, a args) (Value, error) {
	values, err := a.bind("int", 0, "default", "base")
	if err != nil {
		return nil, err
	}
	base, err := integerArgument(values[1], 10)
	if err != nil {
		return nil, err
	}
	if values[0] == nil {
		values[0] = Int(0)
	}
	switch v := v.(type) {
	case *undefined:
		return nil, v.failure()
	case Str:
		if n, ok := parseInteger(v.text, base); ok {
			return n, nil
		}
		if f, ok := parseFloat(v.text); ok {
			if n, err := truncate(f); err == nil {
				return n, nil
			}
		}
		return values[0], nil
	case Float:
		n, err := truncate(float64(v))
		if err != nil {
			if math.IsInf(float64(v), 0) {
				return nil, err
			}
			return values[0], nil
		}
		return n, nil
	}
	if n, ok := bigOf(v); ok {
		return integer(n), nil
	}
	return values[0], nil
}

// parseInteger is Python's int(text, base).
func parseInteger(text string, base int) (Value, bool) {
	text = strings.TrimFunc(text, isSpace)
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = strings.TrimPrefix(text[:1], "+"), text[1:]
	}
	if len(text) > maxIntegerDigits || base != 0 && base < 2 || base > 36 {
		return nil, false
	}
	if prefix, ok := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]; ok && strings.HasPrefix(strings.ToLower(text), prefix) {
		text = strings.TrimPrefix(text[2:], "_")
	}
	if text == "" || text[0] == '_' || text[len(text)-1] == '_' || strings.Contains(text, "__") || strings.ContainsAny(text, "+-") {
		return nil, false
	}
	n, ok := new(big.Int).SetString(sign+strings.ReplaceAll(text, "_", ""), base)
	if !ok {
		return nil, false
	}
	return integer(n), true
}

// parseFloat is Python's float(text).
func parseFloat(text string) (float64, bool) {
	text = strings.TrimFunc(text, isSpace)
	body := strings.ToLower(strings.TrimLeft(text, "+-"))
	switch body {
	case "inf", "infinity", "nan":
	default:
		if strings.ContainsAny(body, "xpin") || strings.HasPrefix(body, "_") || strings.HasSuffix(body, "_") || strings.Contains(body, "__") {
			return 0, false
		}
		text = strings.ReplaceAll(text, "_", "")
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func floatFilter(_ *run, v Value, a args) (Value, error) {
	values, err := a.bind("float", 0, "default")
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *undefined:
		return nil, v.failure()
	case Str:
		if f, ok := parseFloat(v.text); ok {
			return Float(f), nil
		}
	}
	if f, ok := floatOf(v); ok {
		return Float(f), nil
	}
	if values[0] == nil {
		return Float(0), nil
	}
	return values[0], nil
}

func absFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("abs", 0); err != nil {
		return nil, err
	}
	if f, ok := v.(Float); ok {
		return Float(math.Abs(float64(f))), nil
	}
	if n, ok := bigOf(v); ok {
		return integer(new(big.Int).Abs(n)), nil
	}
	if u, ok := v.(*undefined); ok {
		return nil, failf("bad operand type for abs(): '%s'", u.typeName())
	}
	return nil, failf("bad operand type for abs(): '%s'", v.typeName())
}

func roundFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("round", 0, "precision", "method")
	if err != nil {
		return nil, err
	}
	precision, err := integerArgument(values[0], 0)
	if err != nil {
		return nil, err
	}
	way, err := textArgument(values[1], Control("common"))
	if err != nil {
		return nil, err
	}
	f, isFloat := v.(Float)
	x, isNumber := floatOf(v)
	if !isNumber {
		return nil, failf("type %s doesn't define __round__ method", v.typeName())
	}
	switch way.text {
	case "ceil":
		return Float(math.Ceil(x*math.Pow10(precision)) / math.Pow10(precision)), nil
	case "floor":
		return Float(math.Floor(x*math.Pow10(precision)) / math.Pow10(precision)), nil
	case "common":
		if !isFloat {
			return roundInteger(v, precision), nil
		}
		return Float(roundFloat(float64(f), precision)), nil
	}
	return nil, failf("method must be common, ceil or floor")
}

// roundInteger rounds to a power of ten, halves to even, where precision is negative.
func roundInteger(v Value, precision int) Value {
	n, _ := bigOf(v)
	if precision >= 0 {
		return integer(n)
	}
	if -precision > maxIntegerDigits {
		return Int(0)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-precision)), nil)
	quotient, rest := new(big.Int).DivMod(n, unit, new(big.Int))
	double := new(big.Int).Lsh(rest, 1)
	if c := double.Cmp(unit); c > 0 || c == 0 && quotient.Bit(0) == 1 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return integer(quotient.Mul(quotient, unit))
}

// roundFloat rounds the exact decimal value, halves to even.
func roundFloat(f float64, precision int) float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) || precision > 323 {
		return f
	}
	if precision >= 0 {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
		return rounded
	}
	if precision < -308 {
		return math.Copysign(0, f)
	}
	unit := math.Pow10(-precision)
	return math.RoundToEven(f/unit) * unit
}

// itemsFilter yields the entries of a dictionary; what is no mapping fails when the first is read, as Python's generator does.
func itemsFilter(r *run, v Value, a args) (Value, error) {
	if _, err := a.bind("items", 0); err != nil {
		return nil, err
	}
	if d, ok := v.(*Dict); ok {
		return &generator{r, "generator", (&dictView{d, "dict_items"}).iterator()}, nil
	}
	_, missing := v.(*undefined)
	return r.lazy(func() (Value, bool, error) {
		if missing {
			return nil, false, nil
		}
		return nil, false, failf("Can only get item pairs from a mapping.")
	}), nil
}
