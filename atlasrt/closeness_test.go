package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// trial is what a target makes of a prompt, beside plain references that take the same experts. Losses are relative L2 differences of logits
// from those of the reference in f32, by position.
type trial struct {
	losses    []float64 // of the target
	reference []float64 // of the reference that rounds to bf16 once after each operation
	states    bool      // layers keep states
	rounded   int       // products whose activations the target and both references round further

	routed, turned int       // rows that were routed, and those for which the reference in f32 would have chosen otherwise
	gaps           []float64 // how much better that choice is, by turned row
	moved          []float64 // the most that bf16 moves a score of such a row
}

// subject is what is tried: it gives a row of logits for each position of a prompt that it computes in steps of so many rows, with a cache of kv.
type subject func(t *testing.T, target *instance.Target, folder string, tokens []int32, rows int, kv op.DType) ([]float32, model.Layout)

// try runs a prompt in steps of so many rows, with a cache of bf16.
func (of subject) try(t *testing.T, target *instance.Target, folder string, tokens []int32, rows int) trial {
	t.Helper()
	var made choices
	watched := *target
	watched.Set = chooser{target.Set, &made}
	got, layout := of(t, &watched, folder, tokens, rows, op.BF16)
	x := trial{states: layout.Keeps(model.PerSequence)}
	rules := roundedCalls(t, target, opened(t, folder), tokens, rows)
	x.rounded = len(rules)
	follow := func(act, kv op.DType) ([]float32, []routedRow) {
		reference, routers := onRoundingOracle(t, act, rules), &routed{}
		reference.Set = follower{Set: reference.Set, t: t, act: act, plain: oracle.New(act), taken: made, routed: routers}
		logits, _ := of(t, reference, folder, tokens, rows, kv)
		return logits, routers.rows
	}
	exactly := op.F32
	if keepsF32(target.Bundle) {
		exactly = op.BF16 // what the cache rounds is not the kernels' loss
	}
	truth, exact := follow(op.F32, exactly)
	rounded, moved := follow(op.BF16, op.BF16)
	positions := len(truth) / int(layout.Vocab)
	x.losses, x.reference = positionLosses(got, truth, positions), positionLosses(rounded, truth, positions)
	x.routed = len(exact)
	for i, row := range exact {
		if gap := row.gap(); gap > 0 {
			x.turned++
			x.gaps, x.moved = append(x.gaps, gap), append(x.moved, golden.Worst(moved[i].scores, row.scores))
		}
	}
	return x
}

// promptLogits are those of all positions of a prompt.
func promptLogits(t *testing.T, target *instance.Target, folder string, tokens []int32, rows int, kv op.DType) ([]float32, model.Layout) {
	t.Helper()
	sizes := smallSizes()
	sizes.MaxBatchTokens, sizes.KVType = rows, kv
	m := placeSized(t, target, opened(t, folder), sizes)
	all, err := direct(t, m).Logits(tokens, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	return all, m.Layout
}

// headScores are those of a head, at all positions but the last: each reads the token behind it.
func headScores(t *testing.T, target *instance.Target, folder string, tokens []int32, rows int, kv op.DType) ([]float32, model.Layout) {
	t.Helper()
	sizes := smallSizes()
	sizes.MaxBatchTokens, sizes.KVType, sizes.Drafts = rows, kv, 1
	m := placeSized(t, target, opened(t, folder), sizes)
	stream, s := solos(t, m, len(tokens))
	defer stream.Close()
	defer s.Close()
	var all []float32
	for first := 0; first < len(tokens)-1; first += rows {
		end := min(first+rows, len(tokens)-1)
		step, err := s.Take(tokens[first:end], tokens[end])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, step.Scores...)
	}
	return all, m.Layout
}

// positionLosses are the relative L2 differences of so many rows.
func positionLosses(got, want []float32, rows int) []float64 {
	losses, vocab := make([]float64, rows), len(want)/rows
	for i := range losses {
		losses[i] = relative(got[i*vocab:(i+1)*vocab], want[i*vocab:(i+1)*vocab])
	}
	return losses
}

// ratio is the most that one of so many losses is of its reference.
func ratio(losses, reference []float64, n int) (most float64) {
	for i, loss := range losses[:n] {
		if r := loss / reference[i]; !(r <= most) {
			most = r
		}
	}
	return most
}

// ranks is ratio where losses are compared in order of size, for all but the largest tenth.
func (x trial) ranks() float64 {
	return ratio(slices.Sorted(slices.Values(x.losses)), slices.Sorted(slices.Values(x.reference)), len(x.losses)-len(x.losses)/10)
}

// together is ratio of all positions together.
func (x trial) together() float64 { return middle(x.losses) / middle(x.reference) }

// String is a line for a test's log.
func (x trial) String() string {
	line := fmt.Sprintf("the worst of %d positions loses %.2f times what the reference does there, by rank %.2f, together %.2f (%.1e)",
		len(x.losses), ratio(x.losses, x.reference, len(x.losses)), x.ranks(), x.together(), middle(x.losses))
	if x.routed > 0 {
		line += fmt.Sprintf("; other experts for %d of %d rows", x.turned, x.routed)
		if x.turned > 0 {
			line += fmt.Sprintf(", at most %.1e worse", slices.Max(x.gaps))
		}
	}
	if x.rounded > 0 {
		line += fmt.Sprintf("; %d products rounded", x.rounded)
	}
	return line
}

// limit is what a target may lose, in times of what the reference loses by rounding to bf16.
type limit struct {
	times float64
	each  bool // it holds for each position
}

// Limits. A few positions lose much by chance where activations are rounded to bytes.
var (
	inF32   = limit{0.1, true} // roundings inside of products, where activations are f32
	inBF16  = limit{2, true}   // as much again, for roundings inside of operations
	inBytes = limit{3, false}  // as a CPU multiplies by NVFP4
)

// nearTie is how much worse an expert may be that was chosen, whatever bf16 does to scores.
const nearTie = 1e-2

// judge is an error where a target loses more than it may.
//
// Each position is compared with itself. Where layers keep states, or activations are rounded further, a few positions lose much by chance: there
// a state times a query nearly cancels, or a number lies between two that it may be rounded to. So losses are compared by rank, the smallest
// with the smallest. The largest tenth counts only in all positions together, which may lose twice as much.
//
// Experts that were chosen may be worse than others by what so much loss moves two scores.
func (x trial) judge(most limit) error {
	var errs []error
	fail := func(format string, arguments ...any) { errs = append(errs, fmt.Errorf(format, arguments...)) }
	if by := x.ranks(); !(by <= most.times) {
		fail("by rank, %.2f times the reference's loss, want at most %v", by, most.times)
	}
	if all := x.together(); !(all <= 2*most.times) {
		fail("all positions together, %.2f times the reference's loss, want at most %v", all, 2*most.times)
	}
	for i, loss := range x.losses {
		if most.each && !x.states && x.rounded == 0 && !(loss <= most.times*x.reference[i]) {
			fail("position %d: relative L2 difference is %.2e, the reference's %.2e, want at most %v times that", i, loss, x.reference[i], most.times)
		}
	}
	for i, gap := range x.gaps {
		if worst := max(nearTie, 2*most.times*x.moved[i]); !(gap <= worst) {
			fail("an expert was chosen that is %.1e worse than another, want at most %.1e", gap, worst)
		}
	}
	return errors.Join(errs...)
}

// judged fails where a prompt in steps of so many rows loses more than it may.
func judged(t *testing.T, target *instance.Target, folder string, tokens []int32, rows int, most limit) {
	t.Helper()
	subject(promptLogits).judged(t, target, folder, tokens, rows, most)
}

func (of subject) judged(t *testing.T, target *instance.Target, folder string, tokens []int32, rows int, most limit) {
	t.Helper()
	x := of.try(t, target, folder, tokens, rows)
	t.Log(x)
	if err := x.judge(most); err != nil {
		t.Error(err)
	}
}

func TestBF16LosesLittleMoreThanTheOracle(t *testing.T) {
	for _, name := range append(families(), quantised...) {
		t.Run(name, func(t *testing.T) {
			want := golden.Read(t, name)
			eachHardwareThat(t, keepsBF16, false, func(t *testing.T, target *instance.Target) {
				judged(t, target, want.Checkpoint, want.Tokens, 128, inBF16)
			})
		})
	}
}

// A head that drafts loses no more than its model.
func TestHeadsLoseLittle(t *testing.T) {
	for _, name := range heads() {
		t.Run(name, func(t *testing.T) {
			want := golden.Read(t, name)
			eachHardwareThat(t, keepsF32, false, func(t *testing.T, target *instance.Target) {
				subject(headScores).judged(t, target, want.Checkpoint, want.Tokens, 128, inF32)
			})
			eachHardwareThat(t, keepsBF16, false, func(t *testing.T, target *instance.Target) {
				subject(headScores).judged(t, target, want.Checkpoint, want.Tokens, 128, inBF16)
			})
		})
	}
}
