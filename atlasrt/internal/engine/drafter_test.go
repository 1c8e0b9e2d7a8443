package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// Draft makes the fake model a drafter: of the drafts behind a chunk the first ones are the likeliest tokens, how many depends on what came
// before, and the next one is not.
func (m *fakeModel) Draft(q op.Stream, in *Drafting) {
	now, step, read := *in, *in.Step, &m.read
	m.device.launch(q, func() {
		index, tokens := m.ints(q, step.Index, step.Outputs), m.ints(q, step.Tokens, step.Rows)
		starts := m.ints(q, now.Starts, now.Chunks+1)
		draws := m.ints(q, now.Draws, starts[now.Chunks])
		for n := range now.Chunks {
			first, end := starts[n], starts[n+1]
			if first == end {
				continue // padding
			}
			last := first
			for last+1 < end && tokens[index[last+1]] == draws[last] {
				last++
			}
			m.counts[[2]int{int(end - first), int(last - first + 1)}]++
			all := append(slices.Clone((*read)[index[last]]), draws[last])
			likeliest := m.greedy(all, int(now.Most)-1)
			if right := hash(noTokens, all) >> 8 % uint32(now.Most); int(right) < len(likeliest) {
				likeliest[right] = (likeliest[right] + 1) % fakeVocab
			}
			m.put(q, now.Counts+op.Ptr(4*n), uint32(last-first+1))
			for i, token := range slices.Concat(draws[last:last+1], likeliest) {
				m.put(q, now.Next+op.Ptr(4*(n*now.Most+int32(i))), uint32(token))
			}
		}
	})
}

// drafting is an engine whose fake model drafts, so that steps draw up to so many tokens of a sequence.
func drafting(draws int, change func(*Config, *fixture)) func(*Config, *fixture) {
	return func(c *Config, f *fixture) {
		c.Draws, c.Drafter, c.MaxBatchTokens = draws, f.model, c.MaxBatchTokens+c.MaxSequences*draws
		f.model.counts = map[[2]int]int{}
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
			q.Close = fakeClose(5+i, true)
		}
		requests = append(requests, q)
	}
	for _, draws := range []int{2, 4} {
		counts := map[[2]int]int{}
		for _, test := range circumstances() {
			t.Run(fmt.Sprintf("%d draws, %s", draws, test.name), func(t *testing.T) {
				f := newFixture(t, drafting(draws, test.change))
				var inboxes []*Inbox
				for _, q := range requests {
					inboxes = append(inboxes, f.submit(t, q))
				}
				for i, events := range inboxes {
					q, got := requests[i], read(events)
					want := f.model.drawn(q)
					if got.err != nil || !slices.Equal(got.tokens, want) {
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
				for c, n := range f.model.counts {
					counts[c] += n
				}
				if test.check != nil {
					test.check(t, f)
				}
			})
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
		inboxes := []*Inbox{f.submit(t, greedy([]int32{1, 2, 3}, 120)), f.submit(t, greedy([]int32{4}, 120))}
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
	good := Config{Device: d, Set: tapeSampler{oracle.New(op.F32), d}, Model: newFakeModel(d), KVType: op.F32, Blocks: 10, MaxSequences: 4, MaxBatchTokens: 16, Draws: 4, Drafter: newFakeModel(d)}
	cases := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"nobody drafts", func(c *Config) { c.Drafter = nil }, "a drafter is for more than one draw"},
		{"nothing to draft", func(c *Config) { c.Draws = 1 }, "a drafter is for more than one draw"},
		{"negative", func(c *Config) { c.Draws = -1 }, "the number of draws is -1"},
		{"more than the model is made for", func(c *Config) { c.Draws, c.MaxSequences = fakeJournal+2, 1 }, "9 draws, and the model is made for 7 drafts"},
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

// There is room for the logits of every draw, whatever a config says of others.
func TestThereAreLogitsForEveryDraw(t *testing.T) {
	f := newFixture(t, drafting(2, func(c *Config, _ *fixture) { c.MaxOutputs = 1 }))
	if got, want := f.ask(t, greedy([]int32{1, 2}, 20)), f.model.greedy([]int32{1, 2}, 20); !slices.Equal(got.tokens, want) {
		t.Errorf("got %v (%v), want %v", got.tokens, got.err, want)
	}
}
