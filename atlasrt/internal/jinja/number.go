package jinja

import (
	"math"
	"math/big"
	"math/bits"
)

// maxIntegerDigits bounds integers, as Python bounds those it prints (sys.int_info.default_max_str_digits).
const (
	maxIntegerDigits = 4300
	maxIntegerBits   = 14284
)

// integer is the value of n.
func integer(n *big.Int) Value {
	if n.IsInt64() {
		return Int(n.Int64())
	}
	return &Big{n}
}

// bigOf is an integer of any size; ok is false for other values. Booleans are integers.
func bigOf(v Value) (*big.Int, bool) {
	switch v := v.(type) {
	case Int:
		return big.NewInt(int64(v)), true
	case *Big:
		return v.n, true
	case Bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	}
	return nil, false
}

// smallOf is an integer that fits 64 bits.
func smallOf(v Value) (int64, bool) {
	switch v := v.(type) {
	case Int:
		return int64(v), true
	case Bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// floatOf is a number as a float.
func floatOf(v Value) (float64, bool) {
	switch v := v.(type) {
	case Float:
		return float64(v), true
	case *Big:
		f, _ := new(big.Float).SetInt(v.n).Float64()
		return f, true
	}
	n, ok := smallOf(v)
	return float64(n), ok
}

func (r *run) unary(operator string, v Value) (Value, error) {
	switch n := v.(type) {
	case *undefined:
		return nil, n.failure()
	case Float:
		if operator == "-" {
			return -n, nil
		}
		return n, nil
	}
	n, ok := bigOf(v)
	if !ok {
		return nil, failf("bad operand type for unary %s: '%s'", operator, v.typeName())
	}
	if operator == "-" {
		n = new(big.Int).Neg(n)
	}
	return integer(n), nil
}

// binary is left operator right.
func (r *run) binary(operator string, left, right Value) (Value, error) {
	if s, ok := left.(Str); ok && operator == "%" {
		return r.percentFormat(s, right)
	}
	for _, v := range []Value{left, right} {
		if u, ok := v.(*undefined); ok {
			return nil, u.failure()
		}
	}
	switch operator {
	case "+":
		if v, ok, err := r.join(left, right); ok || err != nil {
			return v, err
		}
	case "*":
		if v, ok, err := r.repeat(left, right); ok || err != nil {
			return v, err
		}
	}
	if v, ok, err := r.arithmetic(operator, left, right); ok || err != nil {
		return v, err
	}
	if operator == "**" {
		operator = "** or pow()"
	}
	return nil, failf("unsupported operand type(s) for %s: '%s' and '%s'", operator, left.typeName(), right.typeName())
}

// join is the sum of strings, lists or tuples.
func (r *run) join(left, right Value) (Value, bool, error) {
	switch l := left.(type) {
	case Str:
		s, ok := right.(Str)
		if !ok {
			return nil, false, failf("can only concatenate str (not %q) to str", right.typeName())
		}
		if l.markup || s.markup {
			l, s = r.escape(l), r.escape(s)
		}
		out, err := r.joinText(l, s)
		return out, true, err
	case *List:
		m, ok := right.(*List)
		if !ok {
			return nil, false, failf("can only concatenate list (not %q) to list", right.typeName())
		}
		if err := r.spend(len(l.items) + len(m.items)); err != nil {
			return nil, false, err
		}
		return &List{append(append([]Value(nil), l.items...), m.items...)}, true, nil
	case *Tuple:
		m, ok := right.(*Tuple)
		if !ok {
			return nil, false, failf("can only concatenate tuple (not %q) to tuple", right.typeName())
		}
		if err := r.spend(len(l.items) + len(m.items)); err != nil {
			return nil, false, err
		}
		return &Tuple{items: append(append([]Value(nil), l.items...), m.items...)}, true, nil
	}
	return nil, false, nil
}

// joinText is the concatenation of two strings.
func (r *run) joinText(left, right Str) (Str, error) {
	size := len(left.text) + len(right.text)
	if size <= r.maxText && left.origin == right.origin && (left.origin == nil || left.origin == allData) {
		r.charge(size / bytesPerStep)
		return Str{left.text + right.text, left.origin, left.markup}, r.over
	}
	b := textBuilder{run: r, text: make([]byte, 0, min(size, r.maxText))}
	b.add(left)
	b.add(right)
	out := b.str()
	out.markup = left.markup
	return out, r.over
}

// repeat is a sequence times a count.
func (r *run) repeat(left, right Value) (Value, bool, error) {
	count, ok := smallOf(right)
	if !ok {
		if count, ok = smallOf(left); !ok {
			return nil, false, nil
		}
		left = right
	}
	count = max(count, 0)
	items, isSequence := sequence(left)
	if isSequence {
		if len(items) > 0 && count > int64(r.steps/len(items)) {
			r.exceed("steps")
			return nil, false, r.over
		}
		repeated := make([]Value, 0, len(items)*int(count))
		for range count {
			if len(items) == 0 {
				break
			}
			repeated = append(repeated, items...)
		}
		if err := r.spend(len(repeated)); err != nil {
			return nil, false, err
		}
		if _, ok := left.(*Tuple); ok {
			return &Tuple{items: repeated}, true, nil
		}
		return &List{repeated}, true, nil
	}
	s, ok := left.(Str)
	if !ok {
		return nil, false, nil
	}
	b := textBuilder{run: r}
	b.addRepeated(s, int(min(count, math.MaxInt32)))
	out := b.str()
	out.markup = s.markup
	return out, true, r.over
}

// arithmetic is the operation on numbers; ok is false where the operands are none.
func (r *run) arithmetic(operator string, left, right Value) (Value, bool, error) {
	a, aInt := numberOf(left)
	b, bInt := numberOf(right)
	if aInt && bInt {
		v, err := integerArithmetic(operator, a, b)
		return v, true, err
	}
	x, ok := floatOf(left)
	y, ok2 := floatOf(right)
	if !ok || !ok2 {
		return nil, false, nil
	}
	v, err := floatArithmetic(operator, x, y)
	return v, true, err
}

// number is an integer: small, or big where big is set.
type number struct {
	small int64
	big   *big.Int
}

func numberOf(v Value) (number, bool) {
	if n, ok := smallOf(v); ok {
		return number{small: n}, true
	}
	if n, ok := v.(*Big); ok {
		return number{big: n.n}, true
	}
	return number{}, false
}

func (n number) bigInt() *big.Int {
	if n.big != nil {
		return n.big
	}
	return big.NewInt(n.small)
}

func integerArithmetic(operator string, a, b number) (Value, error) {
	if a.big == nil && b.big == nil {
		if v, ok := smallArithmetic(operator, a.small, b.small); ok {
			return v, nil
		}
	}
	x, y, out := a.bigInt(), b.bigInt(), new(big.Int)
	switch operator {
	case "+":
		out.Add(x, y)
	case "-":
		out.Sub(x, y)
	case "*":
		if x.BitLen()+y.BitLen() > maxIntegerBits {
			return nil, failf("an integer exceeds %d digits", maxIntegerDigits)
		}
		out.Mul(x, y)
	case "/":
		if y.Sign() == 0 {
			return nil, failf("division by zero")
		}
		f, _ := new(big.Rat).SetFrac(x, y).Float64()
		if math.IsInf(f, 0) {
			return nil, failf("integer division result too large for a float")
		}
		return Float(f), nil
	case "//", "%":
		if y.Sign() == 0 {
			if operator == "%" {
				return nil, failf("integer modulo by zero")
			}
			return nil, failf("integer division or modulo by zero")
		}
		// Go rounds towards zero, Python down.
		rest := new(big.Int)
		out.QuoRem(x, y, rest)
		if rest.Sign() != 0 && rest.Sign() != y.Sign() {
			out.Sub(out, big.NewInt(1))
			rest.Add(rest, y)
		}
		if operator == "%" {
			out = rest
		}
	case "**":
		return integerPower(x, y)
	}
	return integer(out), nil
}

func integerPower(x, y *big.Int) (Value, error) {
	if y.Sign() < 0 {
		f, _ := new(big.Float).SetInt(x).Float64()
		g, _ := new(big.Float).SetInt(y).Float64()
		return floatArithmetic("**", f, g)
	}
	if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxIntegerBits/int64(x.BitLen()-1)) {
		return nil, failf("an integer exceeds %d digits", maxIntegerDigits)
	}
	if x.BitLen() <= 1 && y.Sign() != 0 { // of -1, 0 and 1 only the parity of the exponent counts
		y = big.NewInt(2 - int64(y.Bit(0)))
	}
	return integer(new(big.Int).Exp(x, y, nil)), nil
}

// smallArithmetic is the fast path; ok is false where the result may not fit 64 bits.
func smallArithmetic(operator string, a, b int64) (Value, bool) {
	switch operator {
	case "+":
		c := a + b
		return Int(c), (c > a) == (b > 0)
	case "-":
		c := a - b
		return Int(c), (c < a) == (b > 0)
	case "*":
		hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
		return Int(a * b), hi == 0 && lo < 1<<63 && a != math.MinInt64 && b != math.MinInt64
	case "//", "%":
		if b == 0 || a == math.MinInt64 {
			return nil, false
		}
		quotient, rest := a/b, a%b
		if rest != 0 && (rest < 0) != (b < 0) {
			quotient--
			rest += b
		}
		if operator == "%" {
			return Int(rest), true
		}
		return Int(quotient), true
	}
	return nil, false
}

func floatArithmetic(operator string, x, y float64) (Value, error) {
	switch operator {
	case "+":
		return Float(x + y), nil
	case "-":
		return Float(x - y), nil
	case "*":
		return Float(x * y), nil
	case "/":
		if y == 0 {
			return nil, failf("float division by zero")
		}
		return Float(x / y), nil
	case "//", "%":
		if y == 0 {
			if operator == "%" {
				return nil, failf("float modulo")
			}
			return nil, failf("float floor division by zero")
		}
		quotient, rest := floorDivide(x, y)
		if operator == "%" {
			return Float(rest), nil
		}
		return Float(quotient), nil
	}
	if x == 0 && y < 0 {
		return nil, failf("0.0 cannot be raised to a negative power")
	}
	if x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, failf("a negative number cannot be raised to a fraction: complex numbers are not supported")
	}
	f := math.Pow(x, y)
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, failf("(34, 'Numerical result out of range')")
	}
	return Float(f), nil
}

// floorDivide is Python's divmod of floats.
func floorDivide(x, y float64) (quotient, rest float64) {
	rest = math.Mod(x, y)
	quotient = (x - rest) / y
	if rest != 0 {
		if (y < 0) != (rest < 0) {
			rest += y
			quotient--
		}
	} else {
		rest = math.Copysign(0, y)
	}
	if quotient == 0 {
		return math.Copysign(0, x/y), rest
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor, rest
}
