package engine

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

func random(r *rand.Rand, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = r.Int32N(fakeVocab)
	}
	return out
}

func greedy(prompt []int32, n int) Request {
	return Request{Prompt: prompt, MaxTokens: n, LogProbs: -1, Sampling: sample.Greedy()}
}

// first waits for an event, where there is one.
func first(events *Inbox) Event {
	for e := range events.All() {
		return e
	}
	return Event{Token: -1}
}

func (f *fixture) ask(t *testing.T, r Request) answer {
	t.Helper()
	return read(f.submit(t, r))
}

// settle waits until no request is left, and no step either: one that was in flight when the last request ended holds blocks.
func (f *fixture) settle(t *testing.T) Stats {
	t.Helper()
	if err := errors.Join(f.Drain(t.Context()), f.Between(func() error { return nil })); err != nil {
		t.Fatal(err)
	}
	return f.Stats()
}

// pause holds forward passes up until resume is called: requests that come meanwhile meet in a step, however late they come.
func (f *fixture) pause() (resume func()) {
	f.device.pause.Lock()
	return sync.OnceFunc(f.device.pause.Unlock)
}

// together submits requests that meet in a step.
func (f *fixture) together(t *testing.T, requests ...Request) (inboxes []*Inbox) {
	t.Helper()
	defer f.pause()()
	for _, r := range requests {
		inboxes = append(inboxes, f.submit(t, r))
	}
	return inboxes
}

func (f *fixture) submit(t *testing.T, r Request) *Inbox {
	t.Helper()
	events, err := f.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("Submit: %v", err)
	}
	return events
}

// The same prompt must give the same tokens whatever happens around it (T157, T161, T162, T165).
func TestTokensDoNotDependOnCircumstances(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	prompts := make([][]int32, 8)
	common := random(r, 20)
	for i := range prompts {
		prompts[i] = append(slices.Clone(common[:r.IntN(21)]), random(r, 1+r.IntN(30))...)
	}
	prompts[5] = slices.Clone(prompts[4]) // the same prompt twice in one step
	const n = 30
	withGraphs := func(c *Config, f *fixture) { c.Device = f.graphs }
	ahead := func(c *Config, f *fixture) { c.Device = f.ahead }
	slow := func(c *Config, f *fixture) { c.Device, f.device.slow = f.ahead, true }
	wasAhead := func(t *testing.T, f *fixture) {
		if f.ahead.most != 2 {
			t.Errorf("at most %d steps were in flight, want 2", f.ahead.most)
		}
	}
	mode := func(m GraphMode, change func(*Config, *fixture), replayed ...func(Stats) uint64) (func(*Config, *fixture), func(*testing.T, *fixture)) {
		return func(c *Config, f *fixture) { change(c, f); c.Graphs = m }, func(t *testing.T, f *fixture) {
			s := f.Stats()
			for i, r := range replayed {
				if r(s) == 0 {
					t.Errorf("kind %d of steps was never replayed: %+v", i, s)
				}
			}
			if s.GraphFallbacks != 0 {
				t.Errorf("%d times recording failed", s.GraphFallbacks)
			}
		}
	}
	full, parts := func(s Stats) uint64 { return s.ReplayedFull }, func(s Stats) uint64 { return s.ReplayedPiecewise }
	fullOnly, fullOnlyCheck := mode(GraphsFull, withGraphs, full)
	piecewise, piecewiseCheck := mode(GraphsPiecewise, withGraphs, parts)
	both, bothCheck := mode(GraphsFullAndPiecewise, ahead, full, parts)
	cases := []struct {
		name   string
		change func(*Config, *fixture)
		check  func(*testing.T, *fixture)
	}{
		{"batched", nil, nil},
		{"one at a time", func(c *Config, _ *fixture) { c.MaxSequences = 1 }, nil},
		{"chunks of 3", func(c *Config, _ *fixture) { c.ChunkTokens = 3 }, nil},
		{"no sharing", func(c *Config, _ *fixture) { c.NoPrefixSharing = true }, nil},
		{"large blocks", func(c *Config, _ *fixture) { c.BlockSize = 32 }, nil},
		{"recorded", withGraphs, func(t *testing.T, f *fixture) {
			if n := f.graphs.captures.Load(); n == 0 || n > 20 {
				t.Errorf("recorded %d steps, want a few", n)
			}
		}},
		{"recorded, no room", func(c *Config, f *fixture) { withGraphs(c, f); c.Blocks = 25 }, preempted},
		{"no room", func(c *Config, _ *fixture) { c.Blocks = 25 }, preempted},
		{"no room, no sharing, chunks of 5", func(c *Config, _ *fixture) {
			c.Blocks, c.NoPrefixSharing, c.ChunkTokens = 25, true, 5
		}, preempted},
		{"all recorded", fullOnly, fullOnlyCheck},
		{"recorded in pieces", piecewise, piecewiseCheck},
		{"ahead", ahead, wasAhead},
		{"ahead, slow", slow, wasAhead},
		{"ahead, slow, not recorded, no room", func(c *Config, f *fixture) { slow(c, f); c.Graphs, c.Blocks = GraphsNone, 25 }, preempted},
		{"ahead, not recorded, chunks of 3", func(c *Config, f *fixture) { ahead(c, f); c.Graphs, c.ChunkTokens = GraphsNone, 3 }, wasAhead},
		{"ahead, no room", func(c *Config, f *fixture) { ahead(c, f); c.Blocks = 25 }, preempted},
		{"ahead, recorded whole and in pieces, chunks of 5", func(c *Config, f *fixture) { both(c, f); c.ChunkTokens = 5 }, bothCheck},
		{"ahead, given sizes, recorded at the start", func(c *Config, f *fixture) {
			ahead(c, f)
			c.GraphSizes, c.CaptureAtStart = []int{5, 2}, true
		}, func(t *testing.T, f *fixture) {
			if s := f.Stats(); s.ReplayedFull == 0 || s.ReplayedFull >= s.DecodeSteps {
				t.Errorf("replayed %d of %d decode steps, want those of up to 5 rows", s.ReplayedFull, s.DecodeSteps)
			}
		}},
		{"states", withStates(nil), recomputed},
		{"states, one at a time", withStates(func(c *Config, _ *fixture) { c.MaxSequences = 1 }), recomputed},
		{"states, recorded, no room, chunks of 5", withStates(func(c *Config, f *fixture) { withGraphs(c, f); c.Blocks, c.ChunkTokens = 25, 5 }), preempted},
		{"states, ahead, few at a time", withStates(func(c *Config, f *fixture) { ahead(c, f); c.MaxSequences = 3 }), wasAhead},
		{"states, ahead, slow, not recorded, no room", withStates(func(c *Config, f *fixture) { slow(c, f); c.Graphs, c.Blocks = GraphsNone, 25 }), preempted},
		{"states, ahead, recorded whole and in pieces, chunks of 3", withStates(func(c *Config, f *fixture) { both(c, f); c.ChunkTokens = 3 }), bothCheck},
		{"states, ahead, recorded at the start", withStates(func(c *Config, f *fixture) { ahead(c, f); c.CaptureAtStart = true }), wasAhead},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.change)
			for round := range 2 { // the second finds the first one's prompts in the cache
				var inboxes []*Inbox
				resume := f.pause()
				defer resume()
				for i, p := range prompts {
					if i == 3 { // a neighbour that is cancelled
						ctx, cancel := context.WithCancel(t.Context())
						events, err := f.Submit(ctx, greedy(random(r, 25), 40))
						if err != nil {
							t.Fatal(err)
						}
						go func() {
							first(events)
							cancel()
						}()
					}
					request := greedy(p, n)
					if round == 1 { // whose logits are read
						request.LogProbs = 2
					}
					inboxes = append(inboxes, f.submit(t, request))
				}
				resume()
				for i, events := range inboxes {
					got, want := read(events), f.model.greedy(prompts[i], n)
					if got.err != nil || got.finish != FinishLength || !slices.Equal(got.tokens, want) {
						t.Fatalf("round %d, prompt %d %v: got %v (%v, %v), want %v", round, i, prompts[i], got.tokens, got.finish, got.err, want)
					}
					for j, l := range got.logProbs {
						logits := f.model.logits(append(slices.Clone(prompts[i]), want[:j]...))
						if w := sample.LogProbs(logits, want[j], 2); !sameLogProb(l, w) {
							t.Fatalf("round %d, prompt %d, token %d: got %+v, want %+v", round, i, j, l, w)
						}
					}
				}
			}
			if s := f.settle(t); s.BlocksUsed+s.SlotsUsed > 0 {
				t.Errorf("at rest %d blocks and %d slots are used", s.BlocksUsed, s.SlotsUsed)
			}
			if test.check != nil {
				test.check(t, f)
			}
		})
	}
}

func recorded(t *testing.T, f *fixture) {
	if s := f.Stats(); s.ReplayedFull == 0 || s.GraphFallbacks != 0 {
		t.Errorf("no step was replayed: %+v", s)
	}
}

// goneAhead says that steps which edit logits were queued behind others as well.
func goneAhead(t *testing.T, f *fixture) {
	if recorded(t, f); f.ahead.most != 2 {
		t.Errorf("at most %d steps were in flight, want 2", f.ahead.most)
	}
}

func preempted(t *testing.T, f *fixture) {
	if f.Stats().Preemptions == 0 {
		t.Error("nothing was preempted: the test does not test")
	}
}

func recomputed(t *testing.T, f *fixture) {
	if s := f.Stats(); s.PrefixHits != 0 || s.PrefixRecomputed == 0 {
		t.Errorf("%d tokens were taken from the cache and %d computed again, want none and some", s.PrefixHits, s.PrefixRecomputed)
	}
}

func sameLogProb(a, b sample.TokenLogProb) bool {
	return a.Token == b.Token && a.LogProb == b.LogProb && slices.Equal(a.Top, b.Top)
}

// Draws depend on the request's own seed, position and edits, whatever its neighbours ask for (T166).
func TestDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 5))
	var requests []Request
	for i := range 12 {
		p := sample.Defaults()
		p.Seed = int64(r.Uint64())
		p.Temperature = []float32{0, 0.7, 1.5}[i%3]
		if i%2 == 0 {
			p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty = 1.3, 0.5, 0.25
		}
		if i%4 < 2 {
			p.LogitBias = map[int32]float32{r.Int32N(fakeVocab): 2, 7: float32(math.Inf(-1))}
		}
		q := Request{Prompt: random(r, 1+r.IntN(12)), MaxTokens: 30, LogProbs: -1, Sampling: p}
		if i%5 == 0 {
			q.MinTokens, q.End = 10, random(r, 8)
		}
		if i%6 == 5 { // whose logits are read: no step goes ahead until it ends
			q.LogProbs, q.MaxTokens = 1, 10
		}
		requests = append(requests, q)
	}
	for _, test := range circumstances() {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.change)
			for i, events := range f.together(t, requests...) {
				if got, want := read(events), f.model.drawn(requests[i]); !slices.Equal(got.tokens, want) {
					t.Errorf("%+v:\ngot  %v\nwant %v", requests[i], got.tokens, want)
				}
			}
			if f.settle(t); test.check != nil {
				test.check(t, f)
			}
		})
	}
	twin := requests[1]
	twin.Sampling.Seed += 1 << 40
	if f := newFixture(t, nil); slices.Equal(f.ask(t, twin).tokens, f.model.drawn(requests[1])) {
		t.Error("a seed that differs in a high bit gives the same tokens")
	}
}

// A share of nothing leaves the likeliest token, however hot the draw is and whatever else limits it.
func TestShareOfNothing(t *testing.T) {
	f := newFixture(t, nil)
	prompt := []int32{4, 2}
	want := f.model.greedy(prompt, 20)
	for _, topK := range []int32{0, 5} {
		r := greedy(prompt, 20)
		r.Sampling.Temperature, r.Sampling.TopP, r.Sampling.TopK, r.Sampling.MinP = 2, 0, topK, 0.01
		if got := f.ask(t, r); !slices.Equal(got.tokens, want) {
			t.Errorf("top_k %d: got %v, want %v", topK, got.tokens, want)
		}
	}
}

func TestEnd(t *testing.T) {
	f := newFixture(t, nil)
	prompt := []int32{1, 2, 3}
	free := f.model.greedy(prompt, 20)
	end := free[6]
	first := slices.Index(free, end)
	t.Run("stop", func(t *testing.T) {
		r := greedy(prompt, 20)
		r.End = []int32{end}
		got := f.ask(t, r)
		if got.finish != FinishStop || !slices.Equal(got.tokens, free[:first+1]) {
			t.Errorf("end at %d: got %v %v, want %v stop", end, got.tokens, got.finish, free[:first+1])
		}
	})
	t.Run("not before min_tokens", func(t *testing.T) {
		r := greedy(prompt, 20)
		r.MinTokens = 12
		for v := range int32(fakeVocab) {
			if v != 5 && v != 6 {
				r.End = append(r.End, v)
			}
		}
		got := f.ask(t, r)
		if want := f.model.drawn(r); !slices.Equal(got.tokens, want) {
			t.Errorf("got %v, want %v", got.tokens, want)
		}
		if len(got.tokens) < 12 || slices.ContainsFunc(got.tokens[:12], func(v int32) bool { return v != 5 && v != 6 }) {
			t.Errorf("got %v, want at least 12 tokens that are 5 or 6", got.tokens)
		}
		if got.finish != FinishStop || slices.Contains([]int32{5, 6}, got.tokens[len(got.tokens)-1]) {
			t.Errorf("got %v %v, want it to stop at an end token", got.tokens, got.finish)
		}
	})
}

func TestCachedTokensAreReported(t *testing.T) {
	f := newFixture(t, nil)
	prompt := random(rand.New(rand.NewPCG(4, 5)), 21)
	cases := []struct {
		salt string
		want int
	}{{"", 0}, {"", 20}, {"other", 0}, {"other", 20}}
	for i, test := range cases {
		r := greedy(prompt, 2)
		r.CacheSalt = test.salt
		if got := f.ask(t, r).cached; got != test.want {
			t.Errorf("request %d, salt %q: got %d cached tokens, want %d", i, test.salt, got, test.want)
		}
	}
	if s := f.Stats(); s.PrefixHits != 40 || s.PrefixQueries != 84 || s.PromptTokens != 84 || s.GeneratedTokens != 8 || s.Finished != 4 {
		t.Errorf("stats: %+v", s)
	}
}

// circumstance is what a request's tokens must not depend on.
type circumstance struct {
	name   string
	change func(*Config, *fixture)    // of the engine
	check  func(*testing.T, *fixture) // that it came about, of an engine that has settled; nil: nothing tells
}

func circumstances() []circumstance {
	return []circumstance{
		{"queued", nil, nil},
		{"one at a time", func(c *Config, _ *fixture) { c.MaxSequences = 1 }, nil},
		{"recorded", func(c *Config, f *fixture) { c.Device = f.graphs }, recorded},
		{"no room", func(c *Config, _ *fixture) { c.Blocks = 40 }, preempted},
		{"ahead", func(c *Config, f *fixture) { c.Device, c.Graphs = f.ahead, GraphsFullAndPiecewise }, goneAhead},
		{"ahead, one at a time", func(c *Config, f *fixture) { c.Device, c.MaxSequences = f.ahead, 1 }, goneAhead},
		{"ahead, no room, chunks of 3", func(c *Config, f *fixture) { c.Device, c.Blocks, c.ChunkTokens = f.ahead, 40, 3 }, preempted},
		{"ahead, all recorded", func(c *Config, f *fixture) { c.Device, c.Graphs = f.ahead, GraphsFull }, goneAhead},
		{"ahead, in pieces", func(c *Config, f *fixture) { c.Device, c.Graphs = f.ahead, GraphsPiecewise }, nil},
		{"ahead, slow", func(c *Config, f *fixture) { c.Device, f.device.slow = f.ahead, true }, goneAhead},
		{"ahead, slow, not recorded", func(c *Config, f *fixture) { c.Device, f.device.slow, c.Graphs = f.ahead, true, GraphsNone }, nil},
		{"overlap is off", func(c *Config, f *fixture) { c.Device, c.NoOverlap = f.ahead, true }, recorded},
		{"states, ahead, slow", withStates(func(c *Config, f *fixture) { c.Device, f.device.slow = f.ahead, true }), goneAhead},
		{"states, ahead, no room, chunks of 3", withStates(func(c *Config, f *fixture) { c.Device, c.Blocks, c.ChunkTokens = f.ahead, 40, 3 }), preempted},
		{"ahead, slow, in pieces", func(c *Config, f *fixture) { c.Device, f.device.slow, c.Graphs = f.ahead, true, GraphsPiecewise }, nil},
	}
}
