package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// curve is a made-up machine: how long steps take, and how often drafts are right.
type curve struct {
	seconds func(sequences, depth int) float64
	right   []float64 // by draft
	change  float64   // by how many seconds a step between two depths takes longer
}

// best is the most tokens per second that one depth gives, and the depth.
func (c curve) best(sequences, most int) (rate float64, depth int) {
	for d := range most + 1 {
		if r := c.rate(sequences, d); r > rate {
			rate, depth = r, d
		}
	}
	return rate, depth
}

// rate is the tokens per second of a depth.
func (c curve) rate(sequences, depth int) float64 {
	tokens, all := 1.0, 1.0
	for i := range depth {
		all *= c.right[i]
		tokens += all
	}
	return float64(sequences) * tokens / c.seconds(sequences, depth)
}

// run runs steps, each planned while the one before is in flight, and gives tokens, seconds and how often each depth was.
func (c curve) run(d *depth, r *rand.Rand, sequences func() int, steps int) (tokens, seconds float64, depths []int) {
	type step struct {
		sequences, draws, drafts int
		trial                    bool
	}
	var flying *step
	made := 0
	depths = make([]int, d.most+1)
	for range steps {
		n := sequences()
		s := step{sequences: n, draws: made + 1, drafts: d.choose(n), trial: d.begin()}
		made = s.drafts
		depths[s.drafts]++
		if f := flying; f != nil {
			for range f.sequences {
				count := 1
				for count < f.draws && r.Float64() < c.right[count-1] {
					count++
				}
				tokens += float64(count)
				if f.draws > 1 {
					d.counted(f.draws, count)
				}
			}
			took := c.seconds(f.sequences, max(f.drafts, f.draws-1)) * (1 + 0.02*r.NormFloat64())
			if r.IntN(50) == 0 {
				took *= 1 + 3*r.Float64() // something else ran
			}
			if f.drafts == f.draws-1 {
				d.took(f.sequences, f.drafts, f.trial, took)
			} else {
				took += c.change
				d.changed(f.sequences, f.draws-1, took)
			}
			seconds += took
		}
		flying = &s
	}
	return tokens, seconds, depths
}

// linear is the time of a step that reads what its rows share, and some more for each row, and drafts behind it.
func linear(shared, row, draft float64) func(sequences, depth int) float64 {
	return func(sequences, depth int) float64 {
		return shared + row*float64(sequences*(depth+1)) + draft*float64(depth)
	}
}

// Whatever the machine, nearly as many tokens come in a second as with the best depth, and never much fewer than without drafts.
func TestDepthIsNearTheBest(t *testing.T) {
	cases := []struct {
		name  string
		curve curve
	}{
		{"rows are free, drafts are right", curve{linear(4e-3, 1e-5, 2e-4), []float64{.95, .9, .9}, 2e-3}},
		{"rows are free, drafts are often wrong", curve{linear(4e-3, 1e-5, 4e-4), []float64{.6, .4, .3}, 2e-3}},
		{"drafts are never right", curve{linear(4e-3, 1e-5, 2e-4), []float64{0, 0, 0}, 2e-3}},
		{"drafts are dear", curve{linear(1e-3, 1e-5, 8e-4), []float64{.7, .6, .5}, 1e-3}},
		{"rows are dear", curve{linear(1e-4, 1e-3, 1e-5), []float64{.8, .7, .6}, 1e-3}},
		{"rows are dear for many sequences", curve{linear(2e-3, 1e-4, 1e-4), []float64{.85, .8, .7}, 1e-3}},
		{"the third draft is never right", curve{linear(4e-3, 1e-5, 1e-4), []float64{.9, .9, 0}, 4e-3}},
	}
	const most = 3
	for _, test := range cases {
		for _, sequences := range []int{1, 7, 64} {
			t.Run(fmt.Sprintf("%s, %d sequences", test.name, sequences), func(t *testing.T) {
				tokens, seconds, depths := test.curve.run(newDepth(most), rand.New(rand.NewPCG(1, uint64(sequences))), func() int { return sequences }, 6000)
				// Of a machine that now and then takes longer, the mean step is this much longer than the curve.
				const longer = 1 + 1.5/50
				rate := tokens / seconds * longer
				best, depth := test.curve.best(sequences, most)
				if plain := test.curve.rate(sequences, 0); rate < 0.95*best || rate < 0.97*plain {
					t.Errorf("%.1f tokens per second, with the best depth %d %.1f, without drafts %.1f; depths were chosen %v times", rate, depth, best, plain, depths)
				}
			})
		}
	}
}

// What changes is found out: how often drafts are right, and how many sequences there are.
func TestDepthFollows(t *testing.T) {
	d, r := newDepth(3), rand.New(rand.NewPCG(2, 3))
	good := curve{linear(4e-3, 1e-5, 3e-4), []float64{.9, .9, .8}, 1e-3}
	bad := good
	bad.right = []float64{.02, 0, 0}
	one := func() int { return 1 }
	for i, c := range []curve{good, bad, good} {
		c.run(d, r, one, 5000)
		tokens, seconds, depths := c.run(d, r, one, 3000)
		if best, depth := c.best(1, 3); tokens/seconds*1.03 < 0.95*best {
			t.Errorf("time %d: %.1f tokens per second, with the best depth %d %.1f; depths were chosen %v times", i, tokens/seconds, depth, best, depths)
		}
	}
	dear := curve{linear(2e-3, 2e-4, 1e-4), []float64{.8, .7, .6}, 5e-4}
	d = newDepth(3)
	dear.run(d, r, func() int { return 1 + r.IntN(80) }, 20_000)
	for _, sequences := range []int{1, 2, 5, 17, 40, 80} {
		best, depth := dear.best(sequences, 3)
		if got := d.best(sequences, d.of(sequences)); dear.rate(sequences, got) < 0.95*best {
			t.Errorf("%d sequences: got depth %d with %.1f tokens per second, want %d with %.1f", sequences, got, dear.rate(sequences, got), depth, best)
		}
	}
}

// What was measured while the machine was busy does not keep a depth from being tried once it is not.
func TestDepthForgetsABusyMachine(t *testing.T) {
	good := curve{linear(4e-3, 1e-5, 4e-4), []float64{.9, .9, .8}, 1e-3}
	for _, times := range []float64{5, 20, 100} {
		busy, bad := good, good
		busy.seconds = func(sequences, depth int) float64 { return times * good.seconds(sequences, depth) }
		bad.right = []float64{.02, 0, 0}
		d, r, one := newDepth(3), rand.New(rand.NewPCG(4, 5)), func() int { return 1 }
		busy.run(d, r, one, 3000)
		bad.run(d, r, one, 10_000)
		tokens, seconds, depths := bad.run(d, r, one, 3000)
		if best, depth := bad.best(1, 3); tokens/seconds*1.03 < 0.95*best {
			t.Errorf("behind steps that took %v times as long: %.1f tokens per second, with the best depth %d %.1f; depths were chosen %v times", times, tokens/seconds, depth, best, depths)
		}
	}
}

// A number of sequences that never was begins where its neighbours are.
func TestDepthOfANewNumberOfSequences(t *testing.T) {
	d := newDepth(3)
	if got := d.choose(5); got != 3 {
		t.Errorf("where nothing is known: got %d drafts, want as many as there may be", got)
	}
	for range trialSteps {
		for depth := range 4 {
			d.took(8, depth, false, 1e-3+float64(depth)*1e-2)
		}
	}
	d.choose(8)
	if got := d.choose(9); got != 0 {
		t.Errorf("beside 8 sequences, where drafts are dear: got %d drafts, want none", got)
	}
	d.took(16, 0, false, 2e-3)
	if got := d.seconds(16, d.of(16), 2); got < 41e-3 || got > 43e-3 {
		t.Errorf("a step of 16 sequences and 2 drafts: guessed %v s, want twice what 8 take, 42 ms", got)
	}
	if got := d.saved(16, 16*3, 4e-3); got < 1.9e-3 || got > 2.1e-3 {
		t.Errorf("three tokens of each in 4 ms, where one takes 2 ms: saved %v s, want 2 ms", got)
	}
	if got := d.saved(16, 16*3, 1e-3); got < 1.9e-3 || got > 2.1e-3 {
		t.Errorf("three tokens of each in 1 ms, where one took 2 ms at a time when all took longer: saved %v s, want 2 ms at most", got)
	}
}
