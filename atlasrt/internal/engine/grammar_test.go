package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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

// may tells whether a request's grammar allows a token behind those that were generated.
func may(r Request, generated []int32, token int32) bool {
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
			q.Close = fakeClose(5, true)
		case 6:
			q.End = nil
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
			var inboxes []*Inbox
			for _, q := range requests {
				inboxes = append(inboxes, f.submit(t, q))
			}
			for i, events := range inboxes {
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
			if test.check != nil {
				test.check(t, f)
			}
			if s := f.settle(t); s.BlocksUsed+s.SlotsUsed > 0 || s.ForcedTokens == 0 || s.Mask.Count() == 0 {
				t.Errorf("at rest: %+v", s)
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
	f := newFixture(t, withStates(func(c *Config, f *fixture) { c.Device = f.ahead }))
	gate := make(chan struct{})
	time.AfterFunc(10*leastPatience, func() { close(gate) })
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
}

// A request whose mask is late can be cancelled, and the engine can be closed, before it comes.
func TestRequestsEndBeforeTheirMask(t *testing.T) {
	for _, how := range []string{"cancelled", "closed", "cancelled, alone", "closed, alone"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t, func(c *Config, f *fixture) { c.Device = f.ahead })
			gate := make(chan struct{})
			defer close(gate)
			held := greedy([]int32{1, 2, 3}, 20)
			held.Grammar = Following(gatedGrammar{gate, 1})
			inboxes := []*Inbox{f.submit(t, held)}
			if !strings.Contains(how, "alone") {
				inboxes = append(inboxes, f.submit(t, greedy([]int32{4, 5}, 300)))
			}
			for f.Stats().LateMasks == 0 {
				time.Sleep(time.Millisecond)
			}
			if strings.HasPrefix(how, "closed") {
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				for _, inbox := range inboxes {
					inbox.Cancel(0)
				}
			}
			for _, inbox := range inboxes {
				if got := read(inbox); got.finish != FinishCancelled {
					t.Errorf("got %v (%v), want it cancelled", got.finish, got.err)
				}
			}
		})
	}
}

// listGrammar allows lists of tokens, place by place. Where there are no more it is done.
type listGrammar struct {
	places [][]int32
	done   int // places after which the text may end
	wrong  string
}

func (g listGrammar) Next(token int32) (listGrammar, bool) {
	if g.wrong == "next" || len(g.places) == 0 || !slices.Contains(g.places[0], token) {
		return g, false
	}
	g.places, g.done = g.places[1:], g.done-1
	return g, true
}
func (g listGrammar) Done() bool { return g.done <= 0 }
func (g listGrammar) Mask(to []uint32) error {
	switch g.wrong {
	case "error":
		return fmt.Errorf("too many states")
	case "panic":
		panic("no such state")
	}
	if len(g.places) > 0 {
		for _, token := range g.places[0] {
			to[token/32] |= 1 << (token % 32)
		}
	}
	return nil
}
func (g listGrammar) Only() (int32, bool) {
	if g.Done() || len(g.places[0]) != 1 {
		return 0, false
	}
	return g.places[0][0], true
}

func TestEndsOfGrammars(t *testing.T) {
	list := func(places ...[]int32) listGrammar { return listGrammar{places: places, done: len(places)} }
	wrong := func(how string) listGrammar {
		g := list([]int32{1, 2}, []int32{3, 4})
		g.wrong = how
		return g
	}
	early := list([]int32{5}, []int32{6}, []int32{7, 8})
	early.done = 2
	bias := func(token int32) func(*Request) {
		return func(r *Request) { r.Sampling.LogitBias = map[int32]float32{token: float32(math.Inf(-1))} }
	}
	cases := []struct {
		name    string
		grammar listGrammar
		change  func(*Request)
		tokens  []int32 // nil: two or more
		finish  Finish
		err     string
		steps   uint64 // 0: any
	}{
		{"end token", list([]int32{5}, []int32{6}, []int32{7}), nil, []int32{5, 6, 7, 30}, FinishStop, "", 2},
		{"forced tokens with log-probabilities", list([]int32{5}, []int32{6}), func(r *Request) { r.LogProbs = 0 }, []int32{5, 6, 30}, FinishStop, "", 3},
		{"max tokens among forced ones", list([]int32{5}, []int32{6}, []int32{7}), func(r *Request) { r.MaxTokens = 2 }, []int32{5, 6}, FinishLength, "", 1},
		{"max tokens among drawn ones", list([]int32{5, 6}, []int32{6}, []int32{7, 8}), func(r *Request) { r.MaxTokens = 3 }, nil, FinishLength, "", 0},
		{"an end token of the text", list([]int32{5}, []int32{30}), nil, []int32{5, 30}, FinishStop, "", 1},
		{"an end token within the text", list([]int32{5}, []int32{30, 6}, []int32{7}), nil, []int32{5, 6, 7, 30}, FinishStop, "", 0},
		{"only an end token within the text", list([]int32{5}, []int32{30}, []int32{7}), nil, []int32{5}, FinishError, "behind 1 tokens of the answer no token of the model goes on", 0},
		{"min tokens", early, func(r *Request) { r.MinTokens = 3 }, nil, FinishStop, "", 0},
		{"too many min tokens", early, func(r *Request) { r.MinTokens = 4 }, nil, FinishError, "nothing but the end, and min_tokens asks for 1 tokens more", 0},
		{"too many min tokens before the only one", list([]int32{5}, []int32{30}), func(r *Request) { r.MinTokens = 3 }, []int32{5}, FinishError, "nothing but the end, and min_tokens asks for 2 tokens more", 0},
		{"no end token", list([]int32{5}), func(r *Request) { r.End = nil }, []int32{5}, FinishError, "no token may end the answer", 0},
		{"a bias against the only token", list([]int32{5}, []int32{6}, []int32{7}), bias(6), []int32{5}, FinishError, "behind 1 tokens of the answer no token is left that the grammar allows: biases", 0},
		{"a bias against the first one", list([]int32{5}), bias(5), []int32{}, FinishError, "behind 0 tokens of the answer no token is left", 0},
		{"a bias against all that is drawn", list([]int32{5, 6}), func(r *Request) {
			r.Sampling.LogitBias = map[int32]float32{5: float32(math.Inf(-1)), 6: float32(math.Inf(-1))}
		}, []int32{}, FinishError, "no token is left that the grammar allows", 0},
		{"the grammar gives up", wrong("error"), nil, []int32{}, FinishError, "gives up (ask for a simpler one): too many states", 0},
		{"the grammar panics", wrong("panic"), nil, []int32{}, FinishError, "the grammar panics: no such state", 0},
		{"the grammar refuses what it allowed", wrong("next"), nil, nil, FinishError, "the grammar cannot go on behind it", 0},
	}
	for _, ahead := range []bool{false, true} {
		for _, test := range cases {
			t.Run(fmt.Sprintf("%s, ahead %t", test.name, ahead), func(t *testing.T) {
				f := newFixture(t, func(c *Config, f *fixture) {
					if ahead {
						c.Device = f.ahead
					}
				})
				q := greedy([]int32{1, 2, 3}, 9)
				q.End, q.Grammar = []int32{30}, Following(test.grammar)
				if test.change != nil {
					test.change(&q)
				}
				other := f.submit(t, greedy([]int32{4}, 20))
				got := f.ask(t, q)
				if got.finish != test.finish || test.tokens != nil && !slices.Equal(got.tokens, test.tokens) {
					t.Errorf("got %v %v (%v), want %v %v", got.tokens, got.finish, got.err, test.tokens, test.finish)
				}
				if (test.err == "") != (got.err == nil) || got.err != nil && !strings.Contains(got.err.Error(), test.err) {
					t.Errorf("got the error %v, want %q", got.err, test.err)
				}
				if e, ok := errors.AsType[*GrammarError](got.err); ok && e.Fault != (test.name == "the grammar panics") {
					t.Errorf("%v: the server is at fault: %v", got.err, e.Fault)
				}
				if got, want := read(other), f.model.greedy([]int32{4}, 20); !slices.Equal(got.tokens, want) {
					t.Errorf("its neighbour: got %v (%v), want %v", got.tokens, got.err, want)
				}
				d := newFixture(t, drafting(4, func(c *Config, f *fixture) {
					if ahead {
						c.Device = f.ahead
					}
					f.drafter.loose, f.drafter.right = true, func() bool { return true }
					f.drafter.texts = [][]int32{append([]int32{1, 2, 3}, got.tokens...)}
				}))
				if drafted := d.ask(t, q); !slices.Equal(drafted.tokens, got.tokens) || drafted.finish != got.finish || fmt.Sprint(drafted.err) != fmt.Sprint(got.err) {
					t.Errorf("with drafts: got %v %v (%v), want %v %v (%v)", drafted.tokens, drafted.finish, drafted.err, got.tokens, got.finish, got.err)
				}
				if test.steps > 0 {
					g := newFixture(t, func(c *Config, f *fixture) { c.Device = f.graphs })
					if got := g.ask(t, q); got.finish != test.finish {
						t.Fatalf("alone: got %v %v", got.tokens, got.finish)
					}
					if s := g.settle(t); s.Steps != test.steps {
						t.Errorf("took %d steps alone, want %d", s.Steps, test.steps)
					}
				}
			})
		}
	}
}
