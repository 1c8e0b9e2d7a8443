package api

import (
	"fmt"
	"math"
)

// Range is what a numeric field may be.
type Range struct {
	Name      string  // of the field
	Low, High float64 // both are allowed, but see LowOpen
	LowOpen   bool    // Low itself is refused
	Whole     bool    // only integers
}

// Bounds of integers that have none of their own.
const (
	Most       = math.MaxInt32
	MostTokens = 1 << 62 // of numbers of tokens, which the context bounds
)

// Range finds the range of a field, which must have one.
func (f *Fields) Range(name string) Range {
	for _, r := range f.ranges {
		if r.Name == name {
			return r
		}
	}
	panic("BUG: no range for the field " + name)
}

// Holds tells whether a number is in the range.
func (r Range) Holds(n float64) bool {
	return (n > r.Low || n == r.Low && !r.LowOpen) && n <= r.High
}

// HoldsWhole is Holds for integers, which floats round beyond 2^53.
func (r Range) HoldsWhole(n int64) bool {
	if r.Low == math.MinInt64 && r.High == math.MaxInt64 {
		return true
	}
	return n >= int64(r.Low) && n <= int64(r.High)
}

// String words the range for an error.
func (r Range) String() string {
	switch {
	case r.Whole && r.High == math.MaxInt64:
		return "from -9223372036854775808 to 9223372036854775807"
	case r.Whole:
		return fmt.Sprintf("from %d to %d", int64(r.Low), int64(r.High))
	case r.LowOpen:
		return fmt.Sprintf("more than %g and at most %g", r.Low, r.High)
	}
	return fmt.Sprintf("from %g to %g", r.Low, r.High)
}
