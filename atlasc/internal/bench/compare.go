package bench

import (
	"cmp"
	"math"
	"slices"
)

// leastNoise is what no comparison of two builds can tell even where runs agree: code lies at other addresses.
const leastNoise = 1.03

// Change is how one case's time changed.
type Change struct {
	Old, New Case    // the case in the two files
	Ratio    float64 // new time by old time: above 1 is slower
	Noise    float64 // what the ratio may be by chance, at least leastNoise
}

// Slower tells whether the case is slower beyond noise.
func (c *Change) Slower() bool { return c.Ratio > c.Noise }

// Faster tells whether the case is faster beyond noise.
func (c *Change) Faster() bool { return c.Ratio*c.Noise < 1 }

// Comparison is how times changed from one file to another.
type Comparison struct {
	Changes []Change // the slowest first
	Geomean float64  // of the ratios
	Noise   float64  // what the geomean may be by chance
	Missing int      // cases of the old file that the new one has not
	Added   int      // and the other way round
}

// Compare compares the cases that both files have.
func Compare(old, new *File) Comparison {
	var c Comparison
	before := map[[3]string]Case{}
	for _, x := range old.Cases() {
		before[x.key()] = x
	}
	c.Missing = len(before)
	sum, square := 0.0, 0.0
	for _, x := range new.Cases() {
		was, both := before[x.key()]
		if !both {
			c.Added++
			continue
		}
		c.Missing--
		change := Change{was, x, x.Time().Seconds() / was.Time().Seconds(), math.Max(leastNoise, math.Max(was.Noise, x.Noise))}
		c.Changes = append(c.Changes, change)
		sum += math.Log(change.Ratio)
		square += math.Log(change.Noise) * math.Log(change.Noise)
	}
	if n := float64(len(c.Changes)); n > 0 {
		c.Geomean = math.Exp(sum / n)
		c.Noise = math.Max(1.01, math.Exp(math.Sqrt(square)/n)) // cases err independently; a machine as a whole by a per cent
	}
	slices.SortStableFunc(c.Changes, func(a, b Change) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return c
}

// Regressed tells whether something is slower beyond noise: a case, or all together.
func (c *Comparison) Regressed() bool {
	return c.Geomean > c.Noise || slices.ContainsFunc(c.Changes, func(x Change) bool { return x.Slower() })
}
