package main

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/solo"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// heads are the golden checkpoints with a head that drafts.
func heads() []string { return []string{"qwen3_5_moe-mtp", "qwen3_next-mtp"} }

// placeHead loads a checkpoint with its head.
func placeHead(t *testing.T, target *instance.Target, path string, kv op.DType) *instance.Loaded {
	t.Helper()
	sizes := smallSizes()
	sizes.KVType, sizes.Drafts = kv, referenceDrafts
	return placeSized(t, target, opened(t, path), sizes)
}

// readHead is what transformers computed for a head.
func readHead(t *testing.T, name string) (golden.Golden, headValues) {
	t.Helper()
	g := golden.Read(t, name)
	return g, headValues{
		hidden: g.Floats(t, "hidden"), scores: g.Floats(t, "mtp_logits"), draft: g.Ints(t, "mtp_draft"), guess: g.Floats(t, "mtp_draft_logits"),
	}
}

// A head reads and computes what transformers' does, whatever chunks a prompt comes in, and in chunks of any size the same bits.
func TestHeadsAgreeWithTransformers(t *testing.T) {
	for _, name := range heads() {
		t.Run(name, func(t *testing.T) {
			g, want := readHead(t, name)
			judge := func(t *testing.T, m *instance.Loaded, chunks ...int) {
				var first headValues
				for i, chunk := range chunks {
					got, err := headOf(m, g.Tokens, chunk)
					if err != nil {
						t.Fatal(err)
					}
					if i == 0 {
						first = got
					}
					if !slices.Equal(got.draft, want.draft) {
						t.Errorf("in chunks of %d: drafted %v, want %v", chunk, got.draft, want.draft)
					}
					for _, x := range []struct {
						what             string
						got, first, want []float32
					}{{"hidden", got.hidden, first.hidden, want.hidden}, {"scores", got.scores, first.scores, want.scores}, {"logits of drafts", got.guess, first.guess, want.guess}} {
						if len(x.got) != len(x.want) {
							t.Fatalf("%d numbers of %s, want %d", len(x.got), x.what, len(x.want))
						}
						difference := golden.Worst(x.got, x.want)
						t.Logf("in chunks of %d: %s: max |Δ| %.1e", chunk, x.what, difference)
						if !(difference <= 2e-3) {
							t.Errorf("in chunks of %d: %s: max |Δ| is %v, want at most 2e-3", chunk, x.what, difference)
						}
						if !slices.Equal(x.got, x.first) {
							t.Errorf("in chunks of %d: %s: not the bits of chunks of %d", chunk, x.what, chunks[0])
						}
					}
				}
			}
			t.Run("oracle-f32", func(t *testing.T) { judge(t, placeHead(t, onOracle(op.F32), g.Checkpoint, op.F32), 0) })
			eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) {
				judge(t, placeHead(t, target, g.Checkpoint, op.F32), 0, 1, 3, 7)
			})
		})
	}
}

// After steps whose drafts were partly wrong a head knows what it would know had every token come by itself.
func TestHeadsFollowTheDrawsThatCount(t *testing.T) {
	for _, name := range heads() {
		t.Run(name, func(t *testing.T) {
			g, _ := readHead(t, name)
			judge := func(t *testing.T, m *instance.Loaded) {
				prompt, all := len(g.Tokens), slices.Concat(g.Tokens, g.Greedy)
				whole := drawn(t, m, all, 0).Scores
				columns := len(whole) / len(all)
				stream, s := solos(t, m, len(all)+referenceDrafts)
				defer stream.Close()
				defer s.Close()
				step, err := s.Draw(g.Tokens, 0, referenceDrafts)
				for i, c := range []struct{ drafts, right int }{{3, 3}, {3, 0}, {0, 0}, {2, 1}, {1, 1}, {3, 2}} {
					if err != nil {
						t.Fatal(err)
					}
					if prompt+c.right+1 >= len(all) {
						break
					}
					rows := slices.Clone(all[prompt : prompt+1+c.right])
					for range c.drafts - c.right {
						rows = append(rows, (all[prompt+c.right+1]+1)%256)
					}
					step, err = s.Draw(rows, c.drafts, referenceDrafts)
					if err != nil {
						t.Fatal(err)
					}
					if step.Count != 1+c.right || step.Draws[c.right] != all[prompt+1+c.right] {
						t.Fatalf("step %d: %d draws of %v count, want %d, the last of which is %d", i, step.Count, step.Draws, 1+c.right, all[prompt+1+c.right])
					}
					if d := golden.Worst(step.Scores[:step.Count*columns], whole[prompt*columns:][:step.Count*columns]); !(d <= 2e-3) {
						t.Errorf("step %d: max |Δ| of scores is %v, want at most 2e-3", i, d)
					}
					prompt += step.Count
					fresh := drawn(t, m, all[:prompt], 0)
					if d := golden.Worst(step.Guess, fresh.Guess); !(d <= 2e-3) || !slices.Equal(step.Drafts, fresh.Drafts) {
						t.Errorf("step %d: drafted %v, want %v; max |Δ| of logits is %v, want at most 2e-3", i, step.Drafts, fresh.Drafts, d)
					}
				}
			}
			if name == heads()[0] {
				t.Run("oracle-f32", func(t *testing.T) { judge(t, placeHead(t, onOracle(op.F32), g.Checkpoint, op.F32)) })
			}
			eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) { judge(t, placeHead(t, target, g.Checkpoint, op.F32)) })
		})
	}
}

// solos makes a sequence of a loaded model.
func solos(t *testing.T, m *instance.Loaded, context int) (device.Stream, *solo.Sequence) {
	t.Helper()
	stream, err := m.Stream()
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Solo(stream, context)
	if err != nil {
		t.Fatal(err)
	}
	return stream, s
}

// drawn is the step of a whole prompt, behind which tokens are drafted in a context of so many tokens; 0: in one that has room for them.
func drawn(t *testing.T, m *instance.Loaded, tokens []int32, context int) solo.Step {
	t.Helper()
	stream, s := solos(t, m, cmp.Or(context, len(tokens)+1+referenceDrafts))
	defer stream.Close()
	defer s.Close()
	step, err := s.Draw(tokens, 0, referenceDrafts)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// Where a sequence ends with its blocks, drafts past them are made without a place for their keys, and the first is as it is elsewhere.
func TestDraftsPastTheBlocksAreMade(t *testing.T) {
	g, want := readHead(t, heads()[0])
	sizes := smallSizes()
	sizes.KVType, sizes.Drafts, sizes.BlockSize = op.F32, referenceDrafts, 1
	step := drawn(t, placeSized(t, onOracle(op.F32), opened(t, g.Checkpoint), sizes), g.Tokens, len(g.Tokens))
	columns := len(step.Guess) / referenceDrafts
	if d := golden.Worst(step.Guess[:columns], want.guess[:columns]); !(d <= 2e-3) || step.Drafts[0] != want.draft[0] {
		t.Errorf("the first draft is %v, want %v; max |Δ| of its logits is %v, want at most 2e-3", step.Drafts[0], want.draft[0], d)
	}
	for i, v := range step.Guess {
		if math.IsNaN(float64(v)) {
			t.Fatalf("logit %d of drafts is not a number", i)
		}
	}
}
