package schema

import (
	"math/big"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// multiples is the multiples of a positive number. Its digits must divide a power of ten: then the last digits of a number tell.
func (c *compiler) multiples(of decimal) (n numbers, reason string) {
	if of.digits == "1" && of.exponent == 1 {
		return c.integers(), ""
	}
	f := c.forms()
	s := f.set
	step, _ := new(big.Int).SetString(of.digits, 10)
	places := len(of.digits) - of.exponent // behind the point, of the last digit of the step
	last, power := 0, big.NewInt(1)
	for new(big.Int).Mod(power, step).Sign() != 0 {
		if last++; last > 4 {
			return numbers{}, "only steps that divide a power of ten of at most four digits more can be held, such as 1, 5, 0.01 and 0.25, beside lists of values"
		}
		power.Mul(power, big.NewInt(10))
	}
	var forms []regex.Ref
	zeros := s.Repeat(s.Literal("0"), 0, unbounded)
	for suffix := new(big.Int); suffix.Cmp(power) < 0; suffix.Add(suffix, step) {
		digits := ""
		if last > 0 {
			digits = suffix.String()
			digits = strings.Repeat("0", last-len(digits)) + digits
		}
		forms = append(forms, f.endingIn(digits, places, zeros))
	}
	return numbers{set: s.Concat(f.minus, s.Or(forms...)), integer: places <= 0, partial: true}, ""
}

// endingIn is numbers without sign and exponent whose last digits are some, the last of them at so many places behind the point, and zeros
// behind that.
func (f *numberForms) endingIn(digits string, places int, zeros regex.Ref) regex.Ref {
	s := f.set
	noFraction := f.optional(s.Concat(s.Literal(".0"), zeros))
	if places <= 0 {
		return s.Concat(f.wholeEnding(digits+strings.Repeat("0", -places)), noFraction)
	}
	head, tail := "", digits
	free := places - len(digits) // digits behind the point that may be any
	if free < 0 {
		head, tail, free = digits[:-free], digits[-free:], 0
	}
	tail = strings.TrimRight(tail, "0")
	if tail != "" {
		return s.Concat(f.wholeEnding(head), s.Literal("."), f.digits(free), s.Literal(tail), zeros)
	}
	fraction := noFraction
	if free > 0 {
		fraction = f.optional(s.Concat(s.Literal("."), s.Repeat(f.digit, 1, free), zeros))
	}
	return s.Concat(f.wholeEnding(head), fraction)
}

// wholeEnding is whole numbers whose last digits are some.
func (f *numberForms) wholeEnding(digits string) regex.Ref {
	s := f.set
	short := strings.TrimLeft(digits, "0")
	forms := []regex.Ref{s.Concat(f.first, s.Repeat(f.digit, 0, unbounded), s.Literal(digits))}
	switch {
	case digits == "" || short == "":
		forms = append(forms, s.Literal("0"))
	default:
		forms = append(forms, s.Literal(short))
	}
	return s.Or(forms...)
}
