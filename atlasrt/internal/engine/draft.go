package engine

import (
	"fmt"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// keeper names whose memory entry i is, of those of the model and then those of the drafter.
func (r *runner) keeper(i int) string {
	if layers := len(r.layout.Memory); i >= layers {
		return fmt.Sprintf("the drafter's layer %d", i-layers)
	}
	return fmt.Sprintf("layer %d", i)
}

// drafts sets what the steps have in common of counting and drafting: see runner for where it lies.
func (r *runner) drafts(memory [][]op.Ptr) {
	if r.config.Drafter == nil {
		return
	}
	sequences, passes := r.config.MaxSequences, r.config.Draws-2
	words := func(n int) op.Ptr { return op.Ptr(4 * n * sequences) }
	last := r.next - words(1+3*passes)
	r.step.accept = op.Accept{Counts: r.counts, Next: r.next, Last: last, Draws: r.sampled, Force: r.config.ForceDrafts}
	r.step.passes = op.DraftRows{Positions: last + words(1), Slots: last + words(1+passes), Lengths: last + words(1+2*passes), Last: last,
		Pitch: int32(sequences), BlockSize: int32(r.config.BlockSize)}
	p := &r.step.passes
	r.step.drafting = model.Drafting{Step: &r.step.forward, Memory: memory, Last: last, Next: r.next,
		Positions: p.Positions, Slots: p.Slots, Lengths: p.Lengths, Pitch: p.Pitch}
}

// prepareDrafts points what counts and drafts at the arrays of a step that is staged.
func (l *launches) prepareDrafts() {
	f, d, a, p := &l.forward, &l.drafting, &l.accept, &l.passes
	d.Chunks, d.Drafts = int32(l.drawing), int32(l.drafts)
	a.Behind, a.Index, a.Tokens, a.Position = d.Behind, f.Index, f.Tokens, l.sample.Position
	a.Rows, a.Samples, a.Chunks = f.Rows, int32(l.samples), d.Chunks
	p.StepPositions, p.Starts, p.Tables = f.Positions, d.Starts, f.Tables
	p.Rows, p.Chunks, p.Seqs, p.MaxBlocks, p.Passes = f.Rows, d.Chunks, f.Seqs, f.MaxBlocks, d.Drafts-1
}

// queueDrafts queues what counts the draws of a step, and its drafter, which takes in the rows of every step.
func (r *runner) queueDrafts() {
	l := &r.step
	if l.drawing > 0 {
		r.config.Set.Accept(r.stream, l.accept)
		if l.passes.Passes > 0 {
			r.config.Set.DraftRows(r.stream, l.passes)
		}
	}
	r.config.Drafter.Draft(r.stream, &l.drafting)
}

// drafted appends the drafts that the step which was collected last made behind a chunk, by its number among those that drew.
func (r *runner) drafted(to []int32, p *sched.Plan, number int) []int32 {
	for n := 1; n <= p.Drafts; n++ {
		to = append(to, r.results[n*r.config.MaxSequences+number])
	}
	return to
}

// plan plans a step, and how many drafts it makes. The mutex is held.
func (e *Engine) plan() *sched.Plan {
	if e.depth != nil {
		e.scheduler.Draft(e.depth.choose(e.scheduler.Running()))
	}
	return e.scheduler.Next()
}

// learn takes in how many draws of each chunk counted in a step, and how long it took.
func (e *Engine) learn(f *flight, counts []int32, took time.Duration) {
	p, n, tokens := f.plan, 0, 0
	for i := range p.Chunks {
		c := &p.Chunks[i]
		if c.Draws > 1 && c.Counted > 0 {
			e.counts.draft(c.Drafts(), int(counts[n])-1)
			if e.depth != nil {
				e.depth.counted(c.Draws, int(counts[n]))
			}
		}
		n += min(c.Draws, 1)
		tokens += c.Counted
	}
	if e.depth == nil || !p.Decode() || f.waited || f.recorded {
		return
	}
	seconds := took.Seconds()
	if p.Most != p.Drafts+1 {
		e.depth.changed(len(p.Chunks), p.Most-1, seconds)
		return
	}
	e.depth.took(len(p.Chunks), p.Drafts, f.trial, seconds)
	if p.Drafts > 0 {
		e.counts.saved.Add(int64(1e9 * e.depth.saved(len(p.Chunks), tokens, seconds)))
	}
}
