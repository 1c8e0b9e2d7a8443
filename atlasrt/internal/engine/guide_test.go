package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// listGrammar allows lists of tokens, place by place. Where there are no more it is done.
type listGrammar struct {
	places [][]int32
	done   int // places after which the text may end
	wrong  string
	left   int // places that are left at most where it is wrong
}

func (g listGrammar) Next(token int32) (listGrammar, bool) {
	if g.wrongs() == "next" || len(g.places) == 0 || !slices.Contains(g.places[0], token) {
		return g, false
	}
	g.places, g.done = g.places[1:], g.done-1
	return g, true
}

// wrongs is what goes wrong now.
func (g listGrammar) wrongs() string {
	if len(g.places) > g.left {
		return ""
	}
	return g.wrong
}
func (g listGrammar) Done() bool { return g.done <= 0 }
func (g listGrammar) Mask(to []uint32) error {
	switch g.wrongs() {
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
		g.wrong, g.left = how, 2
		return g
	}
	later := func(how string) listGrammar {
		g := list([]int32{1, 2}, []int32{3, 4}, []int32{5, 6}, []int32{7, 8})
		g.wrong, g.left = how, 2
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
		{"the grammar gives up behind two tokens", later("error"), nil, nil, FinishError, "behind 2 tokens of the answer the grammar gives up", 0},
		{"the grammar refuses what it allowed behind two tokens", later("next"), nil, nil, FinishError, "behind 3 tokens of the answer token", 0},
		{"the grammar panics behind two tokens", later("panic"), nil, nil, FinishError, "behind 2 tokens of the answer the grammar panics", 0},
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
				if e, ok := errors.AsType[*GrammarError](got.err); ok && e.Fault != strings.Contains(test.name, "panics") {
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
				if test.steps > 0 { // no mask is late: no time passes while one is made
					synctest.Test(t, func(t *testing.T) {
						g := newFixture(t, func(c *Config, f *fixture) { c.Device = f.graphs })
						if got := g.ask(t, q); got.finish != test.finish {
							t.Fatalf("alone: got %v %v", got.tokens, got.finish)
						}
						if s := g.settle(t); s.Steps != test.steps {
							t.Errorf("took %d steps alone, want %d", s.Steps, test.steps)
						}
					})
				}
			})
		}
	}
}

// A job makes a mask behind each draft that may come, and none behind one that may not.
func TestMasksBehindDrafts(t *testing.T) {
	list := func(done int, places ...[]int32) listGrammar { return listGrammar{places: places, done: done} }
	cases := []struct {
		name    string
		grammar listGrammar
		early   int
		drafts  []int32
		want    [][]int32 // that may come
		beyond  string
	}{
		{"right ones", list(3, []int32{5, 6}, []int32{7, 8}, []int32{9, 10}), 0, []int32{5, 8}, [][]int32{{5, 6}, {7, 8}, {9, 10}}, ""},
		{"no drafts", list(2, []int32{5, 6}, []int32{7, 8}), 0, nil, [][]int32{{5, 6}}, ""},
		{"the second is wrong", list(3, []int32{5, 6}, []int32{7, 8}, []int32{9, 10}), 0, []int32{5, 9}, [][]int32{{5, 6}, {7, 8}}, ""},
		{"one that is no token", list(2, []int32{5, 6}, []int32{7, 8}), 0, []int32{-1, 7}, [][]int32{{5, 6}}, ""},
		{"one beyond all tokens", list(2, []int32{5, 6}, []int32{7, 8}), 0, []int32{1 << 30}, [][]int32{{5, 6}}, ""},
		{"the end", list(1, []int32{5, 6}, []int32{7, 8}), 0, []int32{5, 30, 7}, [][]int32{{5, 6}, {7, 8, 30}}, ""},
		{"min tokens", list(1, []int32{5, 6}, []int32{7, 8}), 2, []int32{5, 7}, [][]int32{{5, 6}, {7, 8}, {30}}, ""},
		{"the end comes too early", list(1, []int32{5, 6}), 2, []int32{5, 7}, [][]int32{{5, 6}, {}}, "behind 41 tokens of the answer the grammar allows nothing but the end, and min_tokens asks for 1 tokens more"},
		{"it gives up", listGrammar{[][]int32{{5, 6}, {7, 8}}, 2, "error", 1}, 0, []int32{5, 7}, [][]int32{{5, 6}, {}}, "behind 41 tokens of the answer the grammar gives up"},
		{"it refuses what it allowed", listGrammar{[][]int32{{5, 6}, {7, 8}}, 2, "next", 1}, 0, []int32{5, 7}, [][]int32{{5, 6}, {7, 8}, {}}, "behind 42 tokens of the answer token 7 was drawn"},
		{"it panics", listGrammar{[][]int32{{5, 6}, {7, 8}}, 2, "panic", 1}, 0, []int32{5, 7}, [][]int32{{5, 6}, {}}, "the grammar panics"},
	}
	g := newGuide(&Request{Grammar: endless{}}, nil, fakeVocab, 4) // whose memory is used again
	for _, test := range cases {
		*g = guide{masks: g.masks, grammar: Following(test.grammar), ends: []int32{30}, generated: 40, early: test.early, drafts: test.drafts}
		g.job()
		var got [][]int32
		for _, mask := range g.masks[:g.rows] {
			tokens := []int32{}
			for token := range int32(fakeVocab) {
				if mask[token/32]>>(token%32)&1 == 1 {
					tokens = append(tokens, token)
				}
			}
			got = append(got, tokens)
		}
		if g.err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: got %v (%v), want %v", test.name, got, g.err, test.want)
		}
		if (g.beyond == nil) != (test.beyond == "") || g.beyond != nil && !strings.Contains(g.beyond.Error(), test.beyond) {
			t.Errorf("%s: behind them %v, want %q", test.name, g.beyond, test.beyond)
		}
	}
}

// The first job of a guide allocates no more than the last.
func TestGuideHasItsMemory(t *testing.T) {
	const draws = 3
	guides := make([]*guide, 11)
	for i := range guides {
		guides[i] = newGuide(&Request{Grammar: endless{}}, nil, fakeVocab, draws)
		guides[i].drafts = []int32{1, 2}
	}
	if got := testing.AllocsPerRun(len(guides)-1, func() {
		g := guides[0]
		guides = guides[1:]
		if g.job(); g.rows != draws || g.err != nil {
			t.Fatalf("%d masks (%v), want %d", g.rows, g.err, draws)
		}
	}); got != 0 {
		t.Errorf("allocations of a first job: got %v, want 0", got)
	}
}
