package schema

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// mostRemainders bounds the states that a remainder and a place take.
const mostRemainders = 4096

// multiples is the multiples of a positive number. Where its digits divide a power of ten the last digits of a number tell, otherwise the
// remainder, digit by digit.
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
			return c.remainders(step, places)
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

// remainders is the multiples of a step whose last digit is at so many places behind the point.
func (c *compiler) remainders(step *big.Int, places int) (n numbers, reason string) {
	f := c.forms()
	s := f.set
	if places < 0 {
		step = new(big.Int).Mul(step, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-places)), nil))
		places = 0
	}
	if !step.IsInt64() || step.Int64() > mostRemainders || int(step.Int64())*(places+1) > mostRemainders {
		return numbers{}, "its multiples cannot be told by less than " + strconv.Itoa(mostRemainders) + " states: round the step"
	}
	by := int(step.Int64())
	if !c.spend(10 * by * (places + 1)) {
		return numbers{}, ""
	}
	// States: the start, the remainders before the point and behind each digit behind it, a zero before the point, zeros at the end.
	state := func(place, rest int) int { return 1 + place*by + rest%by }
	zero := state(places+1, 0)
	zeros := zero + 1
	arcs, final := make([][]regex.Arc, zeros+1), make([]bool, zeros+1)
	add := func(from int, over regex.Ref, to int) { arcs[from] = append(arcs[from], regex.Arc{Over: over, To: to}) }
	scale := make([]int, places+1) // what the digits that are left out multiply by
	for i, power := places, 1; i >= 0; i-- {
		scale[i] = power % by
		power = power * 10 % by
	}
	for place := range places + 1 {
		point := regex.Empty
		if place == 0 {
			point = s.Literal(".")
		}
		for rest := range by {
			at := state(place, rest)
			final[at] = rest*scale[place]%by == 0
			behind := func(from int) {
				for d := range 10 {
					if place < places {
						add(from, s.Concat(point, f.digitOf(d)), state(place+1, 10*rest+d))
					}
				}
				if place == places && rest == 0 {
					add(from, s.Concat(point, f.digitOf(0)), zeros)
				}
			}
			behind(at)
			if place > 0 {
				continue
			}
			for d := range 10 {
				add(at, f.digitOf(d), state(0, 10*rest+d))
			}
			if rest == 0 {
				behind(zero)
			}
		}
	}
	final[zero], final[zeros] = true, true
	add(zeros, f.digitOf(0), zeros)
	add(0, f.digitOf(0), zero)
	for d := 1; d < 10; d++ {
		add(0, f.digitOf(d), state(0, d))
	}
	return numbers{set: s.Concat(f.minus, s.Automaton(arcs, final)), integer: places == 0, partial: true}, ""
}

func (f *numberForms) digitOf(d int) regex.Ref { return f.set.Bytes(byte('0'+d), byte('0'+d)) }

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
