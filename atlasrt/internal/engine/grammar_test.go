package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// fakeGrammar allows tokens by a hash of those before: often only one, sometimes none but the end.
type fakeGrammar struct {
	seen uint32
	slow bool // its masks take long now and then
}

// only is the token that must come; -1 where several may.
func (g fakeGrammar) only() int32 {
	if g.seen>>9%3 > 0 {
		return -1
	}
	return int32(g.seen >> 13 % fakeVocab)
}

func (g fakeGrammar) allows(token int32) bool {
	if only := g.only(); only >= 0 {
		return token == only
	}
	return (g.seen^uint32(token)*2654435761)>>7%4 == 0 || token == int32(g.seen%fakeVocab)
}

func (g fakeGrammar) Next(token int32) (fakeGrammar, bool) {
	allowed := g.allows(token)
	g.seen = hash(g.seen, []int32{token}) + 1
	return g, allowed
}

func (g fakeGrammar) Done() bool { return g.only() < 0 && g.seen>>17%5 == 0 }

func (g fakeGrammar) Mask(to []uint32) error {
	if g.slow && g.seen%16 == 0 {
		time.Sleep(2 * leastPatience)
	}
	for token := range int32(fakeVocab) {
		if g.allows(token) {
			to[token/32] |= 1 << (token % 32)
		}
	}
	return nil
}

func (g fakeGrammar) Only() (int32, bool) {
	only := g.only()
	return only, only >= 0
}

// may tells whether a request and its grammar allow a token behind those that were generated.
func may(r Request, generated []int32, token int32) bool {
	if len(r.Sampling.Allowed) > 0 && !slices.Contains(r.Sampling.Allowed, token) {
		return false
	}
	if r.Grammar == nil {
		return true
	}
	g := r.Grammar
	for _, t := range generated {
		g, _ = g.Next(t)
	}
	next, ok := g.Next(token)
	if slices.Contains(r.End, token) {
		return g.Done() || ok && next.Done()
	}
	return ok
}

// grammatical are requests with grammars, and some without, of every kind.
func grammatical(r *rand.Rand, slow bool) (requests []Request) {
	for i := range 32 {
		q := Request{Prompt: random(r, 1+r.IntN(30)), MaxTokens: 5 + r.IntN(60), LogProbs: -1, Sampling: sample.Greedy(), End: random(r, 2)}
		if i%6 != 5 {
			q.Grammar = Following(fakeGrammar{seen: r.Uint32(), slow: slow})
		}
		switch i % 8 {
		case 1:
			q.Sampling.Temperature, q.Sampling.Seed = 0.8, int64(r.Uint64())
		case 2:
			q.Sampling.RepetitionPenalty, q.Sampling.FrequencyPenalty = 1.3, 0.5
		case 3:
			q.LogProbs, q.MaxTokens = 1, 12
		case 4:
			q.PromptLogProbs = true
		case 5:
			q.Budget = fakeBudget(5, true)
		case 6:
			q.End = nil
		case 7:
			q.Sampling.Allowed = append(random(r, 3*fakeVocab), q.End...)
		}
		requests = append(requests, q)
	}
	return requests
}

// Answers keep to their grammars and are those that drawing one token after another gives, whatever runs beside them (T169).
func TestGrammars(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	requests := grammatical(r, false)
	late := grammatical(r, true)
	drafts := []circumstance{}
	for _, test := range circumstances() {
		drafts = append(drafts, circumstance{"drafts, " + test.name, drafting(3, func(c *Config, f *fixture) {
			if f.drafter.loose = true; test.change != nil { // tokens are forced in place of draws
				test.change(c, f)
			}
			c.Blocks = c.Blocks * 7 / 10 // for requests end sooner
		}), test.check})
	}
	stops, errors, right := 0, 0, 0
	for i, test := range slices.Concat(circumstances(), drafts) {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.change)
			requests := requests
			if i%2 == 0 {
				requests = late
			}
			if f.drafter != nil {
				f.drafter.expect(requests...)
			}
			for i, events := range f.together(t, requests...) {
				q, got := requests[i], read(events)
				want := f.model.drawn(q)
				if q.Grammar != nil {
					right += got.drafts.Right
				}
				if !slices.Equal(got.tokens, want) {
					t.Errorf("request %d:\ngot  %v %v %v\nwant %v", i, got.tokens, got.finish, got.err, want)
					continue
				}
				finish := FinishLength
				if len(want) > 0 && slices.Contains(q.End, want[len(want)-1]) {
					finish = FinishStop
					stops++
				} else if len(want) < q.MaxTokens {
					finish = FinishError
					errors++
				}
				if got.finish != finish || finish != FinishError && got.err != nil || q.PromptLogProbs && finish != FinishError && len(got.prompt) != len(q.Prompt)-1 {
					t.Errorf("request %d: got %v (%v) and %d scored tokens, want %v", i, got.finish, got.err, len(got.prompt), finish)
				}
				for j, l := range got.logProbs {
					if w := sample.LogProbs(f.model.logits(slices.Concat(q.Prompt, want[:j])), want[j], 1); !sameLogProb(l, w) {
						t.Errorf("request %d, token %d: got %+v, want %+v", i, j, l, w)
					}
				}
			}
			if s := f.settle(t); s.BlocksUsed+s.SlotsUsed > 0 || s.ForcedTokens == 0 || s.Mask.Count() == 0 {
				t.Errorf("at rest: %+v", s)
			}
			if test.check != nil {
				test.check(t, f)
			}
		})
	}
	if stops == 0 || errors == 0 || right == 0 {
		t.Errorf("%d answers stopped, %d failed, %d drafts were right: the test does not test", stops, errors, right)
	}
}

// gatedGrammar allows every token; its masks wait at a gate.
type gatedGrammar struct {
	gate  chan struct{} // nil: open
	masks int           // that pass before the gate
}

func (g gatedGrammar) Next(int32) (gatedGrammar, bool) {
	g.masks--
	return g, true
}
func (g gatedGrammar) Done() bool          { return true }
func (g gatedGrammar) Only() (int32, bool) { return 0, false }
func (g gatedGrammar) Mask(to []uint32) error {
	if g.masks <= 0 && g.gate != nil {
		<-g.gate
	}
	for i := range to {
		to[i] = math.MaxUint32
	}
	return nil
}

// A mask that takes long delays its own request and no other, and changes no token.
func TestLateMasksDelayNobody(t *testing.T) {
	for _, test := range circumstances() {
		if strings.Contains(test.name, "one at a time") || strings.Contains(test.name, "states") {
			continue // there is no other request, or no row can be computed again
		}
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.change)
			gate := make(chan struct{})
			held := greedy([]int32{1, 2, 3}, 20)
			held.Grammar = Following(gatedGrammar{gate, 5})
			late, other := f.submit(t, held), f.submit(t, greedy([]int32{4, 5}, 60))
			if got, want := read(other), f.model.greedy([]int32{4, 5}, 60); !slices.Equal(got.tokens, want) {
				t.Errorf("beside a late mask: got %v (%v), want %v", got.tokens, got.err, want)
			}
			if s := f.Stats(); s.Running != 1 || s.LateMasks == 0 {
				t.Errorf("behind the other request: %+v, want the late one to run", s)
			}
			close(gate)
			if got, want := read(late), f.model.greedy([]int32{1, 2, 3}, 20); !slices.Equal(got.tokens, want) {
				t.Errorf("got %v (%v), want %v", got.tokens, got.err, want)
			}
			if s := f.settle(t); s.BlocksUsed > 0 {
				t.Errorf("at rest: %+v", s)
			}
		})
	}
}

// Where sequences have states no row can be computed again, so that a step waits for its masks.
func TestStepsWithStatesWaitForMasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, withStates(func(c *Config, f *fixture) { c.Device = f.ahead }))
		gate := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(gate) })
		held := greedy([]int32{1, 2, 3}, 20)
		held.Grammar = Following(gatedGrammar{gate, 5})
		late, other := f.submit(t, held), f.submit(t, greedy([]int32{4, 5}, 60))
		for i, prompt := range [][]int32{{1, 2, 3}, {4, 5}} {
			if got, want := read([]*Inbox{late, other}[i]), f.model.greedy(prompt, []int{20, 60}[i]); !slices.Equal(got.tokens, want) {
				t.Errorf("request %d: got %v (%v), want %v", i, got.tokens, got.err, want)
			}
		}
		if s := f.settle(t); s.LateMasks != 0 || s.Mask.Count() == 0 {
			t.Errorf("at rest: %+v", s)
		}
	})
}

// A request whose mask is late can be cancelled, and the engine can be closed, before it comes.
func TestRequestsEndBeforeTheirMask(t *testing.T) {
	for _, how := range []string{"cancelled", "closed", "cancelled, alone", "closed, alone"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var release func() // of what runs beside
				f := newFixture(t, func(c *Config, f *fixture) { c.Device, release = f.ahead, holdFrom(f, 20) })
				defer release()
				gate := make(chan struct{})
				defer close(gate)
				held := greedy([]int32{1, 2, 3}, 20)
				held.Grammar = Following(gatedGrammar{gate, 1})
				inboxes := []*Inbox{f.submit(t, held)}
				if !strings.Contains(how, "alone") {
					inboxes = append(inboxes, f.submit(t, greedy([]int32{4, 5}, 300)))
				}
				time.Sleep(time.Second) // the mask is late
				if s := f.Stats(); s.LateMasks != 1 || s.Running != len(inboxes) {
					t.Errorf("before the end: %+v, want a late mask", s)
				}
				closed := make(chan error, 1)
				if strings.HasPrefix(how, "closed") {
					go func() { closed <- f.Close() }()
				} else {
					closed <- nil
					for _, inbox := range inboxes {
						inbox.Cancel(0)
					}
				}
				synctest.Wait()
				release()
				for _, inbox := range inboxes {
					if got := read(inbox); got.finish != FinishCancelled {
						t.Errorf("got %v (%v), want it cancelled", got.finish, got.err)
					}
				}
				if err := <-closed; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
