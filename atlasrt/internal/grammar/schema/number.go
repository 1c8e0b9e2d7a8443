package schema

import (
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// numbers is a set of numbers: every one, or some, or those that an expression spells. Expressions are within canonical numbers, and have
// either all canonical spellings of a value or none, so that their complements are exact.
type numbers struct {
	any     bool
	finite  []decimal // sorted
	set     regex.Ref
	integer bool // all are integers
	bare    bool // and are written with digits alone, as type integer asks for
	partial bool // the set has only numbers without exponent right, as those of multipleOf
}

func (n numbers) none() bool { return !n.any && len(n.finite) == 0 && n.set == regex.Nothing }

// numberForms are expressions of numbers.
type numberForms struct {
	set       *regex.Set
	ready     bool
	minus     regex.Ref // or nothing
	digit     regex.Ref
	first     regex.Ref // a digit that is not zero
	fraction  regex.Ref // or nothing
	all       regex.Ref // as JSON has them
	plain     regex.Ref // without exponent
	canonical regex.Ref // plain, or as Python writes large and small floats
	integer   regex.Ref // canonical integers
	short     regex.Ref // integers without exponent, and at most one zero behind the point
	bare      regex.Ref // integers as programs write them: without exponent, point and minus zero
}

func (f *numberForms) make(s *regex.Set) { f.set = s }

// forms are the shared expressions.
func (c *compiler) forms() *numberForms {
	f := &c.numbers
	if f.ready {
		return f
	}
	s := f.set
	f.ready = true
	f.minus = s.Or(s.Literal("-"), regex.Empty)
	f.digit, f.first = s.Bytes('0', '9'), s.Bytes('1', '9')
	some, many := s.Repeat(f.digit, 1, unbounded), s.Repeat(f.digit, 0, unbounded)
	f.fraction = f.optional(s.Concat(s.Literal("."), some))
	whole := s.Or(s.Literal("0"), s.Concat(f.first, many))
	exponent := s.Concat(s.Or(s.Literal("e"), s.Literal("E")), s.Or(s.Literal("+"), f.minus), some)
	f.all = s.Concat(f.minus, whole, f.fraction, f.optional(exponent))
	f.plain = s.Concat(f.minus, whole, f.fraction)
	zeros := f.optional(s.Concat(s.Literal("."), s.Repeat(s.Literal("0"), 1, unbounded)))
	large := f.scientific(16, mostExponent)
	f.canonical = s.Or(f.plain, s.Concat(f.minus, s.Or(large, f.scientific(-mostExponent, -5))))
	f.integer = s.Or(s.Concat(f.minus, whole, zeros), s.Concat(f.minus, large))
	f.bare = s.Or(s.Literal("0"), s.Concat(f.minus, f.first, many))
	f.short = s.Concat(f.minus, whole, f.optional(s.Literal(".0")))
	return f
}

func (f *numberForms) optional(r regex.Ref) regex.Ref { return f.set.Or(r, regex.Empty) }

func (f *numberForms) digits(n int) regex.Ref { return f.set.Repeat(f.digit, n, n) }

// Bounds of numbers with an exponent.
const (
	mantissaDigits = 16  // behind the point, as Python writes at most
	mostExponent   = 999 // either way
)

// scientific is numbers without sign whose exponents are from least to most and are written.
func (f *numberForms) scientific(least, most int) regex.Ref {
	s := f.set
	fraction := f.optional(s.Concat(s.Literal("."), s.Repeat(f.digit, 1, mantissaDigits)))
	return s.Concat(f.first, fraction, f.exponents(least, most))
}

// exponents is written exponents from least to most: none between -5 and 16.
func (f *numberForms) exponents(least, most int) regex.Ref {
	s := f.set
	written := func(sign string, least, most int) regex.Ref {
		least, most = max(least, 1), min(most, mostExponent)
		if most < least {
			return regex.Nothing
		}
		var forms []regex.Ref
		for n := least; n < 10 && n <= most; n++ {
			forms = append(forms, s.Literal("0"+strconv.Itoa(n)))
		}
		if most >= 10 {
			from, to := f.atLeast(strconv.Itoa(max(least, 10)), "", false), f.atMost(strconv.Itoa(most), "", false)
			forms = append(forms, s.And(from, to, s.Repeat(f.digit, 2, 3)))
		}
		return s.Concat(s.Literal(sign), s.Or(forms...))
	}
	return s.Or(written("e+", max(least, 16), most), written("e-", max(-most, 5), -least))
}

// atLeast is numbers without sign and exponent that are at least, or above, one of some digits before and behind the point.
func (f *numberForms) atLeast(before, behind string, above bool) regex.Ref {
	s := f.set
	n := len(before)
	forms := []regex.Ref{s.Concat(f.first, s.Repeat(f.digit, n, unbounded), f.fraction)}
	for i := range before {
		forms = append(forms, s.Concat(s.Literal(before[:i]), f.between(before[i]+1, '9'), f.digits(n-i-1), f.fraction))
	}
	many := s.Repeat(f.digit, 0, unbounded)
	point := s.Literal(".")
	equal := s.Concat(s.Literal(before), point)
	if behind == "" {
		if above {
			forms = append(forms, s.Concat(equal, many, f.first, many))
		} else {
			forms = append(forms, s.Concat(s.Literal(before), f.fraction))
		}
		return s.Or(forms...)
	}
	for i := range behind {
		forms = append(forms, s.Concat(equal, s.Literal(behind[:i]), f.between(behind[i]+1, '9'), many))
	}
	rest := many
	if above {
		rest = s.Concat(many, f.first, many)
	}
	return s.Or(append(forms, s.Concat(equal, s.Literal(behind), rest))...)
}

// atMost is numbers without sign and exponent that are at most, or below, one of some digits before and behind the point.
func (f *numberForms) atMost(before, behind string, below bool) regex.Ref {
	s := f.set
	n := len(before)
	var forms []regex.Ref
	if n > 1 {
		forms = append(forms, s.Concat(s.Or(s.Literal("0"), s.Concat(f.first, s.Repeat(f.digit, 0, n-2))), f.fraction))
	}
	for i := range before {
		lowest := byte('0')
		if i == 0 && n > 1 {
			lowest = '1'
		}
		forms = append(forms, s.Concat(s.Literal(before[:i]), f.between(lowest, before[i]-1), f.digits(n-i-1), f.fraction))
	}
	zeros := s.Repeat(s.Literal("0"), 0, unbounded)
	equal := s.Concat(s.Literal(before), s.Literal("."))
	if behind == "" {
		if !below {
			forms = append(forms, s.Literal(before), s.Concat(equal, s.Repeat(s.Literal("0"), 1, unbounded)))
		}
		return s.Or(forms...)
	}
	forms = append(forms, s.Literal(before))
	for i := range behind {
		forms = append(forms, s.Concat(equal, s.Literal(behind[:i]), f.between('0', behind[i]-1), s.Repeat(f.digit, 0, unbounded)))
		if i > 0 {
			forms = append(forms, s.Concat(equal, s.Literal(behind[:i])))
		}
	}
	if !below {
		forms = append(forms, s.Concat(equal, s.Literal(behind), zeros))
	}
	return s.Or(forms...)
}

// between is a digit of a range, which may be empty.
func (f *numberForms) between(low, high byte) regex.Ref {
	if low > high {
		return regex.Nothing
	}
	return f.set.Bytes(low, high)
}

// mantissa is a mantissa and an exponent whose number is on a side of d: at least, or at most; strict excludes it.
func (f *numberForms) mantissa(d decimal, side func(before, behind string, strict bool) regex.Ref, strict bool) regex.Ref {
	s := f.set
	form := side(d.digits[:1], d.digits[1:], strict)
	fraction := f.optional(s.Concat(s.Literal("."), s.Repeat(f.digit, 1, mantissaDigits)))
	return s.Concat(s.And(form, s.Concat(f.first, fraction)), f.exponents(d.exponent-1, d.exponent-1))
}

// magnitudes is canonical numbers without sign that are at least or above, or at most or below, the magnitude of d.
func (f *numberForms) magnitudes(d decimal, upwards, strict bool) regex.Ref {
	s := f.set
	switch {
	case upwards && d.digits == "":
		return s.Or(f.atLeast("0", "", strict), f.scientific(-mostExponent, mostExponent))
	case upwards:
		return s.Or(f.atLeast(d.before(), d.behind(), strict), f.scientific(d.exponent, mostExponent), f.mantissa(d, f.atLeast, strict))
	case d.digits == "":
		return f.atMost("0", "", strict)
	}
	return s.Or(f.atMost(d.before(), d.behind(), strict), f.scientific(-mostExponent, d.exponent-2), f.mantissa(d, f.atMost, strict))
}

// bound is the numbers on one side of d.
func (c *compiler) bound(d decimal, upwards, strict bool) numbers {
	f := c.forms()
	s := f.set
	minus := s.Literal("-")
	zero := s.Concat(minus, f.atMost("0", "", false))
	inside := f.magnitudes(d, upwards != d.negative, strict) // of the sign of d
	var set regex.Ref
	switch {
	case d.digits == "" && upwards:
		set = inside
		if !strict {
			set = s.Or(set, zero)
		}
	case d.digits == "":
		set = s.Concat(minus, f.magnitudes(d, true, strict))
		if !strict {
			set = s.Or(set, f.atMost("0", "", false))
		}
	case upwards && !d.negative:
		set = inside
	case upwards:
		set = s.Or(f.magnitudes(decimal{}, true, false), s.Concat(minus, inside))
	case d.negative:
		set = s.Concat(minus, inside)
	default:
		set = s.Or(inside, s.Concat(minus, f.magnitudes(decimal{}, true, false)))
	}
	return numbers{set: set}
}

// spelled is all canonical spellings of a number.
func (f *numberForms) spelled(d decimal) regex.Ref {
	s := f.set
	zeros := s.Repeat(s.Literal("0"), 0, unbounded)
	sign := s.Literal(d.sign())
	if d.digits == "" {
		sign = f.minus
	}
	fraction := s.Concat(s.Literal("."+d.behind()), zeros)
	if d.behind() == "" {
		fraction = f.optional(s.Concat(s.Literal(".0"), zeros))
	}
	form := s.Concat(sign, s.Literal(d.before()), fraction)
	if text, ok := d.scientific(); ok {
		e := strings.IndexByte(text, 'e')
		mantissa := s.Literal(text[:e])
		if len(d.digits) == 1 {
			mantissa = s.Concat(mantissa, f.optional(s.Concat(s.Literal("."), s.Repeat(s.Literal("0"), 1, mantissaDigits))))
		} else {
			mantissa = s.Concat(mantissa, s.Repeat(s.Literal("0"), 0, mantissaDigits-len(d.digits)+1))
		}
		form = s.Or(form, s.Concat(mantissa, s.Literal(text[e:])))
	}
	return form
}

// canonical is the expression of numbers.
func (c *compiler) canonical(n numbers) regex.Ref {
	switch {
	case n.any:
		return c.forms().canonical
	case len(n.finite) > 0:
		forms := make([]regex.Ref, len(n.finite))
		for i, d := range n.finite {
			forms[i] = c.forms().spelled(d)
		}
		return c.rules.Regexes.Or(forms...)
	}
	return n.set
}

func (c *compiler) integers() numbers { return numbers{set: c.forms().integer, integer: true} }

func (c *compiler) hasNumber(n numbers, d decimal) bool {
	if n.any {
		return true
	}
	for _, other := range n.finite {
		if other == d {
			return true
		}
	}
	if n.set == regex.Nothing || !c.spend(4) {
		return false
	}
	return c.rules.Regexes.Matches(n.set, d.plain())
}

func (c *compiler) bothNumbers(a, b numbers) numbers {
	switch {
	case a.any || b.none():
		return b
	case b.any || a.none():
		return a
	case len(a.finite) > 0 || len(b.finite) > 0:
		if len(a.finite) == 0 || len(b.finite) > 0 && len(b.finite) < len(a.finite) {
			a, b = b, a
		}
		var kept []decimal
		for _, d := range a.finite {
			if c.hasNumber(b, d) {
				kept = append(kept, d)
			}
		}
		return numbers{finite: kept, bare: a.bare || b.bare}
	}
	return numbers{set: c.rules.Regexes.And(a.set, b.set), integer: a.integer || b.integer, bare: a.bare || b.bare, partial: a.partial || b.partial}
}

func (c *compiler) eitherNumbers(a, b numbers) numbers {
	switch {
	case a.any || b.none():
		return a
	case b.any || a.none():
		return b
	case len(a.finite) > 0 && len(b.finite) > 0:
		return numbers{finite: uniqueDecimals(append(a.finite[:len(a.finite):len(a.finite)], b.finite...)), bare: a.bare && b.bare}
	}
	return numbers{set: c.rules.Regexes.Or(c.canonical(a), c.canonical(b)), integer: a.integer && b.integer, bare: a.bare && b.bare, partial: a.partial || b.partial}
}

func (c *compiler) notNumbers(a numbers) numbers {
	switch {
	case a.any:
		return numbers{}
	case a.none():
		return numbers{any: true}
	}
	s, within := c.rules.Regexes, c.forms().canonical
	if a.partial {
		within = c.forms().plain
	}
	return numbers{set: s.And(within, s.Not(c.canonical(a))), partial: a.partial}
}

// someNumber says whether there is a number in a set.
func (c *compiler) someNumber(n numbers) bool {
	return n.any || len(n.finite) > 0 || n.set != regex.Nothing && c.living(n.set)
}

// written is how numbers are written: integers without exponent, those of type integer with digits alone, and values of a list as Python writes
// them.
func (c *compiler) written(n numbers) regex.Ref {
	s := c.rules.Regexes
	switch {
	case n.any:
		return c.forms().all
	case n.bare && n.set == c.forms().integer:
		return c.forms().bare
	case len(n.finite) == 0 && n.bare:
		return s.And(n.set, c.forms().bare)
	case len(n.finite) == 0 && n.integer:
		return s.And(n.set, c.forms().short)
	case len(n.finite) == 0:
		return n.set
	}
	var forms []regex.Ref
	for _, d := range n.finite {
		text := d.plain()
		scientific, ok := d.scientific()
		if len(text) <= 2*mostDigits {
			forms = append(forms, s.Literal(text))
		}
		if n.bare {
			continue
		}
		if d.behind() == "" {
			forms = append(forms, s.Literal(text+".0"))
		}
		if ok {
			forms = append(forms, s.Literal(scientific))
		}
	}
	return s.Or(forms...)
}
