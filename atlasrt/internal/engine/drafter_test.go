package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// fakeDrafts is what a fake drafter keeps: the token behind each one of a sequence.
var fakeDrafts = []model.Memory{{Kind: model.PerToken, Arrays: []model.Array{{Elements: 1, Type: op.I32}}}}

// fakeDrafter drafts what a fake model draws: of the drafts behind a chunk the first ones are right, how many depends on what came before, and the
// next one is not.
type fakeDrafter struct {
	*fakeModel
	loose bool        // tokens may turn out to be others than were drawn
	right func() bool // of each draft: it is right; nil: as what came before says
	texts [][]int32   // what is to come of some sequences, which need not be the likeliest tokens
}

// expect lets drafts be right for requests.
func (d *fakeDrafter) expect(requests ...Request) {
	for _, q := range requests {
		d.texts = append(d.texts, slices.Concat(q.Prompt, d.drawn(q)))
	}
}

// next is the right drafts behind tokens.
func (d *fakeDrafter) next(all []int32, drafts int) (next []int32) {
	for _, text := range d.texts {
		if len(text) > len(all) && slices.Equal(text[:len(all)], all) {
			next = slices.Clone(text[len(all):min(len(all)+drafts, len(text))])
			break
		}
	}
	return append(next, d.greedy(slices.Concat(all, next), drafts-len(next))...)
}

func (d *fakeDrafter) Memory() []model.Memory { return fakeDrafts }

// Draft is one kernel. It takes in the token behind each row, and finds fault with what it has of a sequence, and with the rows of passes.
func (d *fakeDrafter) Draft(q op.Stream, in *model.Drafting) {
	now, step, read := *in, *in.Step, &d.read
	d.device.launch(q, func() {
		slots, behind := d.ints(q, step.Slots, step.Rows), d.ints(q, now.Behind, step.Rows)
		for r, slot := range slots {
			if slot >= 0 {
				d.put(q, now.Memory[0][0]+op.Ptr(4*slot), uint32(behind[r]))
			}
		}
		if now.Chunks == 0 {
			return
		}
		starts := d.ints(q, now.Starts, step.Seqs+1)
		last, next := d.ints(q, now.Last, now.Chunks), d.ints(q, now.Next, now.Chunks)
		for s := range step.Seqs {
			n := starts[s]
			if n == starts[s+1] || last[n] < 0 {
				continue
			}
			all := append(slices.Clone((*read)[last[n]]), next[n])
			table := d.ints(q, step.Tables+op.Ptr(4*s*step.MaxBlocks), step.MaxBlocks)
			slot := func(t int32) int32 { return table[t/step.BlockSize]*step.BlockSize + t%step.BlockSize }
			for t := range int32(len(all) - 1) {
				got := d.ints(q, now.Memory[0][0]+op.Ptr(4*slot(t)), 1)[0]
				// What follows the end of a cached block may be another's.
				if got != all[t+1] && !d.loose && (t+1)%step.BlockSize != 0 {
					q.Fail(fmt.Errorf("behind token %d of %v the drafter has %d", t, all, got))
					return
				}
			}
			d.draft(q, &now, &step, s, n, all, slot)
		}
	})
}

// draft writes the drafts of chunk n, which is of sequence s and has all tokens now.
func (d *fakeDrafter) draft(q op.Stream, now *model.Drafting, step *model.Inputs, s, n int32, all []int32, slot func(int32) int32) {
	right := d.next(all, int(now.Drafts))
	wrong := int(hash(noTokens, all) >> 8 % uint32(now.Drafts+1))
	if d.right != nil {
		for wrong = 0; wrong < len(right) && d.right(); wrong++ {
		}
	}
	if wrong < len(right) {
		right[wrong] = (right[wrong] + 1) % fakeVocab
	}
	for i, token := range right {
		d.put(q, now.Next+op.Ptr(4*((int32(i)+1)*now.Pitch+n)), uint32(token))
	}
	for i := range now.Drafts - 1 {
		p, at := int32(len(all))-1+i, 4*i*now.Pitch
		position, to := d.ints(q, now.Positions+op.Ptr(at+4*n), 1)[0], d.ints(q, now.Slots+op.Ptr(at+4*n), 1)[0]
		length := d.ints(q, now.Lengths+op.Ptr(at+4*s), 1)[0]
		if position != p || to >= 0 && (to != slot(p) || length != p+1) || to < 0 && length > p {
			q.Fail(fmt.Errorf("row %d of %d tokens has position %d, slot %d and length %d", i, len(all), position, to, length))
			return
		}
		if to >= 0 {
			d.put(q, now.Memory[0][0]+op.Ptr(4*to), uint32(right[i+1])+fakeVocab)
		}
	}
}

// drafting is an engine whose fake model drafts, so that steps draw up to so many tokens of a sequence.
func drafting(draws int, change func(*Config, *fixture)) func(*Config, *fixture) {
	return func(c *Config, f *fixture) {
		f.drafter = &fakeDrafter{fakeModel: f.model}
		c.Draws, c.Drafter, c.FixedDrafts, c.MaxBatchTokens = draws, f.drafter, true, c.MaxBatchTokens+c.MaxSequences*draws
		f.device.counts = map[[2]int]int{}
		if change != nil {
			change(c, f)
		}
	}
}

// Requests give what they give where a step draws one token, whichever drafts are right: their tokens, log-probabilities and ends.
func TestTokensDoNotDependOnDrafts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	var requests []Request
	for i := range 14 {
		q := greedy(random(r, 1+r.IntN(12)), 20+r.IntN(20))
		switch i % 7 {
		case 1:
			q.Sampling.Temperature, q.Sampling.Seed = 0.1, int64(r.Uint64())
		case 2:
			q.Sampling.FrequencyPenalty = 0.5
		case 3:
			q.End = random(r, 3)
		case 4:
			q.MinTokens, q.End = 10, random(r, 8)
		case 5:
			q.LogProbs, q.PromptLogProbs, q.MaxTokens = 1, true, 10
		case 6:
			q.Budget = fakeBudget(5+i, true)
		}
		requests = append(requests, q)
	}
	for _, draws := range []int{2, 4} {
		counts, right := map[[2]int]int{}, [7]int{}
		for _, test := range circumstances() {
			t.Run(fmt.Sprintf("%d draws, %s", draws, test.name), func(t *testing.T) {
				f := newFixture(t, drafting(draws, test.change))
				f.drafter.expect(requests...)
				for i, events := range f.together(t, requests...) {
					q, got := requests[i], read(events)
					want := f.model.drawn(q)
					if right[i%7] += got.drafts.Right; got.err != nil || !slices.Equal(got.tokens, want) {
						t.Errorf("%+v:\ngot  %v (%v)\nwant %v", q, got.tokens, got.err, want)
						continue
					}
					finish := FinishLength
					if slices.Contains(q.End, want[len(want)-1]) {
						finish = FinishStop
					}
					if got.finish != finish || q.PromptLogProbs && len(got.prompt) != len(q.Prompt)-1 {
						t.Errorf("%+v: got %v and %d log-probabilities of the prompt, want %v", q, got.finish, len(got.prompt), finish)
					}
					for j, l := range got.logProbs {
						if w := sample.LogProbs(f.model.logits(slices.Concat(q.Prompt, want[:j])), want[j], 1); !sameLogProb(l, w) {
							t.Errorf("request %d, token %d: got %+v, want %+v", i, j, l, w)
						}
					}
				}
				s := f.settle(t)
				total := uint64(0)
				for _, q := range requests {
					total += uint64(len(f.model.drawn(q)))
				}
				if s.BlocksUsed+s.SlotsUsed > 0 || s.GeneratedTokens != total {
					t.Errorf("at rest %d blocks and %d slots are used, %d tokens were generated, want none and %d", s.BlocksUsed, s.SlotsUsed, s.GeneratedTokens, total)
				}
				for c, n := range f.device.counts {
					counts[c] += n
				}
				if test.check != nil {
					test.check(t, f)
				}
			})
		}
		if slices.Contains(right[:], 0) {
			t.Errorf("drafts that were right, by kind of request: %v, want some of each", right)
		}
		for n := 1; n <= draws; n++ {
			if counts[[2]int{draws, n}] == 0 {
				t.Errorf("it never came about that %d of %d draws counted", n, draws)
			}
		}
	}
}

// Steps that draw several tokens are fewer, are replayed, and run ahead of one another.
func TestDraftsSaveSteps(t *testing.T) {
	steps := map[int]uint64{}
	for _, draws := range []int{1, 4} {
		f := newFixture(t, func(c *Config, f *fixture) {
			if c.Device, c.CaptureAtStart, c.MaxContext = f.ahead, true, 200; draws > 1 {
				drafting(draws, nil)(c, f)
			}
		})
		recorded := f.Stats().GraphCaptures
		inboxes := f.together(t, greedy([]int32{1, 2, 3}, 120), greedy([]int32{4}, 120))
		for i, prompt := range [][]int32{{1, 2, 3}, {4}} {
			if got, want := read(inboxes[i]), f.model.greedy(prompt, 120); !slices.Equal(got.tokens, want) {
				t.Errorf("%d draws: got %v (%v), want %v", draws, got.tokens, got.err, want)
			}
		}
		s := f.settle(t)
		if steps[draws] = s.Steps; s.ReplayedFull < s.DecodeSteps || s.GraphCaptures != recorded || f.ahead.most != 2 {
			t.Errorf("%d draws: %+v, %d steps in flight; want every decode step replayed, and two in flight", draws, s, f.ahead.most)
		}
	}
	if 3*steps[4] > 2*steps[1] {
		t.Errorf("%d steps that draw up to four tokens, and %d that draw one: want a third less", steps[4], steps[1])
	}
}

// Logits that leave nothing to draw fail their request, wherever in a step's draws.
func TestDraftsOfARequestThatFails(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		f := newFixture(t, drafting(3, func(c *Config, f *fixture) {
			if f.model.poison = 9; ahead {
				c.Device = f.ahead
			}
		}))
		good, bad := f.submit(t, greedy([]int32{1, 2}, 40)), f.submit(t, greedy([]int32{9, 2}, 40))
		if got := read(bad); got.finish != FinishError || got.err == nil || !strings.Contains(got.err.Error(), "not finite") || len(got.tokens) > 0 {
			t.Errorf("got %v %v %v, want an error", got.tokens, got.finish, got.err)
		}
		if got, want := read(good), f.model.greedy([]int32{1, 2}, 40); !slices.Equal(got.tokens, want) {
			t.Errorf("its neighbour: got %v %v, want %v", got.tokens, got.err, want)
		}
	}
}

func TestConfigRefusesDraws(t *testing.T) {
	d := &tapeDevice{Device: host.New(0)}
	good := Config{Device: d, Set: tapeSampler{oracle.New(op.F32), d}, Model: newFakeModel(d), KVType: op.F32, Blocks: 10, MaxSequences: 4, MaxBatchTokens: 16, Draws: 4, Drafter: &fakeDrafter{fakeModel: newFakeModel(d)}}
	cases := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"nobody drafts", func(c *Config) { c.Drafter = nil }, "a drafter is for more than one draw"},
		{"nothing to draft", func(c *Config) { c.Draws = 1 }, "a drafter is for more than one draw"},
		{"negative", func(c *Config) { c.Draws = -1 }, "the number of draws is -1"},
		{"more than the model is made for", func(c *Config) { c.Draws, c.MaxSequences = fakeJournal+2, 1 }, "9 draws, and the model is made for 7 drafts"},
		{"no probability", func(c *Config) { c.ForceDrafts = 1.5 }, "drafts are right with a probability of 1.5"},
		{"rows", func(c *Config) { c.MaxBatchTokens = 15 }, "--max-sequences is 4 (set it to 1 … 3,"},
	}
	for _, test := range cases {
		c := good
		test.change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// Every depth of decode steps is recorded at the start: none, or as many drafts as are fixed, or all up to the most.
func TestDepthsAreRecorded(t *testing.T) {
	for _, test := range []struct {
		fixed bool
		want  uint64
	}{{true, 2}, {false, 4}} {
		f := newFixture(t, drafting(4, func(c *Config, f *fixture) {
			c.Device, c.CaptureAtStart, c.FixedDrafts, c.MaxSequences, c.MaxContext = f.graphs, true, test.fixed, 1, 32
		}))
		if got := f.Stats().GraphCaptures; got != test.want {
			t.Errorf("fixed %t: %d steps are recorded, want %d", test.fixed, got, test.want)
		}
	}
}

// A sequence whose edits would fill a step's inputs draws one token.
func TestManyEditsDrawOneToken(t *testing.T) {
	for _, test := range []struct {
		tokens, draws int
		want          bool
	}{{100, 4, false}, {mostAhead - 8, 4, false}, {mostAhead - 7, 4, true}, {mostAhead + 1, 2, true}} {
		r := greedy(make([]int32, test.tokens), 10)
		for i := range r.Prompt {
			r.Prompt[i] = int32(i)
		}
		r.Sampling.RepetitionPenalty = 1.1
		if got := newTask(r, 1<<20, test.draws).sequence.Single; got != test.want {
			t.Errorf("%d edits in steps of %d draws: alone %t, want %t", test.tokens, test.draws, got, test.want)
		}
	}
}

// There is room for the logits of every draw, whatever a config says of others.
func TestThereAreLogitsForEveryDraw(t *testing.T) {
	f := newFixture(t, drafting(2, func(c *Config, _ *fixture) { c.MaxOutputs = 1 }))
	if got, want := f.ask(t, greedy([]int32{1, 2}, 20)), f.model.greedy([]int32{1, 2}, 20); !slices.Equal(got.tokens, want) {
		t.Errorf("got %v (%v), want %v", got.tokens, got.err, want)
	}
}
