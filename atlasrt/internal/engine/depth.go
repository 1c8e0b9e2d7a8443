package engine

import (
	"math"
	"slices"
)

// depth decides how many drafts steps make: as many as give the most tokens in a second, by what was measured. It knows no clock.
//
// A step of depth d computes d drafts of each sequence, and makes d more. Where draft i is right with the probability a(i) if those before it are,
// it gives e(d) = 1 + a(1) + a(1)·a(2) + … tokens of each sequence in the time t(d), which depends on how many sequences there are.
//
// Times and probabilities change, so that now and then a few steps in a row have another depth than the best. Such a trial costs the time that
// the best depth would not have taken for the same tokens. So does a step between two depths, which is not replayed. Both may cost trialShare of
// all time, but for trials of depths whose time nobody can guess, of which there are a few in all.
type depth struct {
	most   int                    // drafts
	drafts [MaxDrafts]probability // by draft: of being right if those before it are
	times  map[int]*depthTimes    // by sequences, rounded as in bucketRows

	step   int     // that was begun last, from 1
	next   int     // the depth of the next step
	left   int     // steps of a trial that are still to begin
	rest   int     // the step before which no trial begins whose time can be guessed
	credit float64 // seconds that trials may cost
	change float64 // seconds that a step between two depths cost, of late
}

// MaxDrafts is the most drafts of one sequence in a step.
const MaxDrafts = 15

const (
	trialSteps = 8    // of a trial
	trialPause = 64   // steps between two trials
	trialShare = 0.01 // of all time
	trialSaved = 32   // what credit may be saved, in steps of the best depth
	trialMost  = 24   // what a trial is taken to cost at most, in such steps
	betterBy   = 1.01 // how much better a depth must be to follow the one that was best
)

// probability is a mean of hits, in which old ones count less and less.
type probability struct{ hits, tries float64 }

const recent = 512 // tries that count: enough for a hundredth or two

func (p *probability) add(hit bool) {
	const kept = 1 - 1.0/recent
	p.hits, p.tries = p.hits*kept, p.tries*kept+1
	if hit {
		p.hits++
	}
}

// mean begins with what drafting heads are said to reach, at little weight.
func (p *probability) mean() float64 { return (p.hits + 3) / (p.tries + 4) }

// depthTimes is how long steps of so many sequences take.
type depthTimes struct {
	depths [MaxDrafts + 1]duration
	best   int // depth; -1: none was found yet
}

// duration is the median of the last few times of steps.
type duration struct {
	last   [trialSteps]float64 // seconds
	count  int                 // that there were
	median float64             // 0: none
	step   int                 // of the last one
}

func (d *duration) add(seconds float64, step int) {
	d.last[d.count%len(d.last)] = seconds
	d.count++
	d.step = step
	sorted := d.last
	n := min(d.count, len(sorted))
	slices.Sort(sorted[:n])
	d.median = sorted[n/2]
}

func newDepth(most int) *depth {
	return &depth{most: most, times: make(map[int]*depthTimes)}
}

// counted takes in how many draws of a chunk counted.
func (d *depth) counted(draws, count int) {
	for i := range min(draws-1, count) {
		d.drafts[i].add(i+1 < count)
	}
}

// tokens is how many tokens a step of a depth gives of a sequence.
func (d *depth) tokens(depth int) float64 {
	sum, all := 1.0, 1.0
	for i := range depth {
		all *= d.drafts[i].mean()
		sum += all
	}
	return sum
}

// choose is the depth of the next step, of so many sequences. begin must follow if there is one.
func (d *depth) choose(sequences int) int {
	if d.left == 0 {
		t := d.of(sequences)
		d.next = d.best(sequences, t)
		if tried, ok := d.due(sequences, t, d.next); ok {
			d.next, d.left = tried, trialSteps
		}
	}
	return d.next
}

// begin notes that a step begins, and tells whether it belongs to a trial.
func (d *depth) begin() (trial bool) {
	d.step++
	if d.left == 0 {
		return false
	}
	if d.left--; d.left == 0 {
		d.rest = d.step + trialPause
	}
	return true
}

// took takes in that a step of so many sequences, of a depth and in a trial or not, took so many seconds.
func (d *depth) took(sequences, depth int, trial bool, seconds float64) {
	t := d.of(sequences)
	t.depths[depth].add(seconds, d.step)
	lost := 0.0
	if trial {
		lost = d.lost(t, depth, seconds)
	}
	d.credit = min(d.credit+trialShare*seconds-lost, trialSaved*seconds)
}

// changed takes in that a step of so many sequences and drafts, which made fewer or more, took so many seconds.
func (d *depth) changed(sequences, drafts int, seconds float64) {
	lost := d.lost(d.of(sequences), drafts, seconds)
	d.credit += trialShare*seconds - lost
	d.change += (lost - d.change) / 4
}

// lost is by how much longer a step with so many drafts took than the best depth would have for the same tokens.
func (d *depth) lost(t *depthTimes, drafts int, seconds float64) float64 {
	if t.best < 0 || t.depths[t.best].count == 0 {
		return 0
	}
	return max(seconds-t.depths[t.best].median*d.tokens(drafts)/d.tokens(t.best), 0)
}

// of is the times of so many sequences.
func (d *depth) of(sequences int) *depthTimes {
	n := bucketRows(max(sequences, 1), math.MaxInt32)
	t := d.times[n]
	if t == nil {
		t = &depthTimes{best: -1}
		d.times[n] = t
	}
	return t
}

// best is the depth that gives the most tokens in a second, of those whose time is known or can be guessed. Where there are none it is that of the
// nearest number of sequences, or all drafts.
func (d *depth) best(sequences int, t *depthTimes) int {
	rate := func(depth int) float64 {
		if seconds := d.seconds(sequences, t, depth); seconds > 0 {
			return d.tokens(depth) / seconds
		}
		return 0
	}
	best, most := -1, 0.0
	if t.best >= 0 {
		best, most = t.best, rate(t.best)*betterBy
	}
	for depth := range d.most + 1 {
		if r := rate(depth); r > most && depth != t.best {
			best, most = depth, r
		}
	}
	if t.best = best; best >= 0 {
		return best
	}
	if near := d.nearest(sequences, func(t *depthTimes) bool { return t.best >= 0 }); near != nil {
		return near.best
	}
	return d.most
}

// due is the depth that is to be tried now, if any: one whose time nobody can guess, or else the one that was not measured for longest, if there
// is credit for it.
func (d *depth) due(sequences int, t *depthTimes, best int) (depth int, ok bool) {
	if t.depths[best].count < trialSteps {
		return 0, false
	}
	oldest := -1
	for depth := range d.most + 1 {
		switch {
		case depth == best:
		case d.seconds(sequences, t, depth) == 0:
			return depth, true
		case oldest < 0 || t.depths[depth].step < t.depths[oldest].step:
			oldest = depth
		}
	}
	if oldest < 0 || d.step < d.rest {
		return 0, false
	}
	step := t.depths[best].median
	cost := max(d.seconds(sequences, t, oldest)-step*d.tokens(oldest)/d.tokens(best), 0)*trialSteps + 2*d.change
	// What was measured long ago, when the machine was busy, may cost more than can be saved, and would never be tried again.
	return oldest, d.credit >= min(cost, trialMost*step)
}

// seconds is how long a step of a depth takes; 0: nobody knows. What was not measured is guessed from a number of sequences nearby where it was,
// by what another depth takes there and here.
func (d *depth) seconds(sequences int, t *depthTimes, depth int) float64 {
	if t.depths[depth].count > 0 {
		return t.depths[depth].median
	}
	other := -1
	for o := range d.most + 1 {
		if t.depths[o].count > 0 && (other < 0 || abs(o-depth) < abs(other-depth)) {
			other = o
		}
	}
	if other < 0 {
		return 0
	}
	near := d.nearest(sequences, func(n *depthTimes) bool { return n.depths[depth].count > 0 && n.depths[other].count > 0 })
	if near == nil {
		return 0
	}
	return t.depths[other].median * near.depths[depth].median / near.depths[other].median
}

// nearest is the times of the number of sequences that is nearest, in proportion, among those that fit.
func (d *depth) nearest(sequences int, fits func(*depthTimes) bool) (near *depthTimes) {
	at, least := 0, math.Inf(1)
	for n, t := range d.times {
		away := math.Abs(math.Log(float64(n) / float64(max(sequences, 1))))
		if fits(t) && (away < least || away == least && n < at) {
			at, least, near = n, away, t
		}
	}
	return near
}

// saved is the seconds that a step saved, which would have been negative where drafts cost more than they gave: against steps without drafts that
// give as many tokens. These compute less, so that none takes longer than the step itself: what was measured of them may be old, and the machine
// not as busy any more. It is 0 where their time is not known.
func (d *depth) saved(sequences, tokens int, seconds float64) float64 {
	plain := d.seconds(sequences, d.of(sequences), 0)
	if plain == 0 {
		return 0
	}
	return min(plain, seconds)*float64(tokens)/float64(max(sequences, 1)) - seconds
}

func abs(n int) int { return max(n, -n) }
