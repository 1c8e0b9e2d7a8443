package sample

import (
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// DRY penalises tokens that would make the end of the context repeat more of what came before ("Don't repeat yourself", by p-e-w, of
// text-generation-webui): where a token would follow R tokens that it followed before, at least AllowedLength of them, the longest such R counts, and
// Multiplier·Base^(R-AllowedLength) is subtracted from its logit.
type DRY struct {
	Multiplier    float32   // 0 is off
	Base          float32   // at least 1
	AllowedLength int32     // at least 1
	Range         int32     // tokens at the end of the context that it looks at; 0: all
	Breakers      *Breakers // texts that repetitions do not reach across; tokens that have one in them are not penalised. nil: none
}

// The Base and AllowedLength of DRY where nobody says others, as everywhere.
const (
	DRYBase          = 1.75
	DRYAllowedLength = 2
)

// maxExponent is the natural logarithm of the largest float32: powers of Base go no further.
const maxExponent = 88.72

// validate reports what is out of range as an *option.Error. Where it is off nothing else of it counts.
func (d DRY) validate() error {
	switch {
	case d.Multiplier == 0:
	case !(d.Base >= 1 && d.Base <= 100):
		return option.Invalid(option.DRYBase, "is %g, must be from 1 to 100", d.Base)
	case d.AllowedLength < 1:
		return option.Invalid(option.DRYAllowedLength, "is %d, must be at least 1", d.AllowedLength)
	case d.Range < 0:
		return option.Invalid(option.DRYRange, "is %d, must be at least 0", d.Range)
	}
	return nil
}

// place is where tokens stand that the context ends with.
type place struct {
	end    int // index of the last of them
	length int // how many there are since the last breaker
}

// dry is how far a sequence is with DRY. A step costs as much as the last token occurs.
type dry struct {
	DRY
	broken  []int32         // states of the breakers
	indices map[int32][]int // by token: where it stands in the range, in order
	places  []place         // where the context's end stands as well, in order
	spare   []place
	found   [2][]offset // the last ones and those before
	longest map[int32]int
}

func newDRY(p DRY, context []int32) *dry {
	d := &dry{DRY: p, indices: map[int32][]int{}, longest: map[int32]int{}, broken: p.Breakers.start()}
	unbroken := 0
	for i, token := range context {
		d.indices[token] = append(d.indices[token], i)
		if unbroken++; p.Breakers.follow(d.broken, token) {
			unbroken = 0
		}
	}
	start := d.start(context)
	for back, length := range commonStarts(context[start:]) {
		if length = min(length, unbroken); back > 0 && length > 0 {
			d.places = append(d.places, place{len(context) - 1 - back, length})
		}
	}
	slices.Reverse(d.places)
	return d
}

// commonStarts is how much of a text read backwards stands also behind each of its tokens, backwards: z[0] is for the last token, and is
// all (the Z algorithm).
func commonStarts(text []int32) []int {
	n := len(text)
	z := make([]int, n)
	if n == 0 {
		return z
	}
	z[0] = n
	at := func(i int) int32 { return text[n-1-i] }
	for i, left, right := 1, 0, 0; i < n; i++ {
		if i < right {
			z[i] = min(right-i, z[i-left])
		}
		for i+z[i] < n && at(z[i]) == at(i+z[i]) {
			z[i]++
		}
		if i+z[i] > right {
			left, right = i, i+z[i]
		}
	}
	return z
}

// start is where the range begins.
func (d *dry) start(context []int32) int {
	if d.Range == 0 {
		return 0
	}
	return max(len(context)-int(d.Range), 0)
}

// append takes the last token of the context into account.
func (d *dry) append(context []int32) {
	last := len(context) - 1
	token := context[last]
	known := d.indices[token]
	first, _ := slices.BinarySearch(known, d.start(context))
	known = known[first:]
	d.indices[token] = append(known, last)
	if d.Breakers.follow(d.broken, token) {
		d.places = d.places[:0]
		return
	}
	grown, old := d.spare[:0], d.places
	for _, i := range known {
		for len(old) > 0 && old[0].end < i-1 {
			old = old[1:]
		}
		p := place{i, 1}
		if len(old) > 0 && old[0].end == i-1 {
			p.length += old[0].length
		}
		grown = append(grown, p)
	}
	d.spare, d.places = d.places, grown
}

// offsets are those of the next token, and those of the one before.
func (d *dry) offsets(context []int32) (before, now []offset) {
	start := d.start(context)
	before, now = d.found[0], d.found[1][:0]
	clear(d.longest)
	for _, p := range d.places {
		length, next := min(p.length, p.end-start+1), context[p.end+1]
		longest, known := d.longest[next]
		if length < int(d.AllowedLength) || length <= longest || d.Breakers.within(next) {
			continue
		}
		if d.longest[next] = length; !known {
			now = append(now, offset{token: next})
		}
	}
	for i := range now {
		now[i].value = -d.penalty(d.longest[now[i].token])
	}
	d.found = [2][]offset{now, before}
	return before, now
}

// penalty is what so long a repetition costs.
func (d *dry) penalty(length int) float32 {
	exponent := float64(length) - float64(d.AllowedLength)
	if natural := math.Log(float64(d.Base)); exponent*natural > maxExponent {
		exponent = maxExponent / natural
	}
	return float32(min(float64(d.Multiplier)*math.Pow(float64(d.Base), exponent), certain))
}
