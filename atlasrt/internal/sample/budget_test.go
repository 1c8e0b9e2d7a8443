package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pieces are the texts of a small vocabulary, in which a mark has many spellings.
var pieces = []string{"", "<", "</", "/", "th", "think", "ink", ">", "</think>", "<<", "x", " ", "\n", "<th", "</th", "ink>y", "nk", "i"}

func piece(token int32) []byte { return []byte(pieces[token]) }

// A mark is found where the text has it, in whatever tokens it comes.
func TestTextMark(t *testing.T) {
	marks := []string{"</think>", "<<x", "x", "thth>", "<think>"}
	r := rand.New(rand.NewPCG(3, 9))
	found := 0
	for _, mark := range marks {
		anywhere := TextMark(mark, int32(len(pieces)), piece, false)
		leading := TextMark(mark, int32(len(pieces)), piece, true)
		for range 20_000 {
			var text string
			var state, lead int32
			var tokens []int32
			for range 1 + r.IntN(8) {
				token := r.Int32N(int32(len(pieces)))
				tokens = append(tokens, token)
				text += pieces[token]
				state, lead = anywhere.After(state, token), leading.After(lead, token)
			}
			if got, want := anywhere.Found(state), strings.Contains(text, mark); got != want {
				t.Fatalf("%q in %q (%v): got %t, want %t", mark, text, tokens, got, want)
			}
			begins := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), mark)
			if got := leading.Found(lead); got != begins {
				t.Fatalf("%q leading %q (%v): got %t, want %t", mark, text, tokens, got, begins)
			}
			if may := strings.HasPrefix(mark, strings.TrimLeft(text, " \t\r\n")); !begins && (lead == Lost) == may {
				t.Fatalf("%q leading %q (%v): got state %d, and it may still come: %t", mark, text, tokens, lead, may)
			}
			if begins {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("no mark came: the test does not test")
	}
}

// The tokens that close are forced where the budget is used up, and nowhere else.
func TestBudget(t *testing.T) {
	const open, shut, nl, word, end = 1, 2, 3, 4, 5
	with := func(change func(*Budget)) Budget {
		c := Budget{Most: 3, Closing: []int32{nl, shut, nl}, Open: TokenMark(open), Shut: TokenMark(shut)}
		change(&c)
		return c
	}
	within := func(c *Budget) { c.Within = true }
	cases := []struct {
		name  string
		close Budget
		model string // what it draws where nothing is forced: o opens, s shuts, w is a word; all else is forced
		want  string // n is a line end
	}{
		{"T060 never closed", with(within), "wwwwwwww", "wwwnsnwwwww"},
		{"closed in time", with(within), "wwswwwww", "wwswwwww"},
		{"closed by the last token", with(within), "wwswww", "wwswww"},
		{"closed at once", with(func(c *Budget) { c.Within, c.Most = true, 0 }), "www", "nsnwww"},
		{"opened by the model", with(func(*Budget) {}), "wowwwww", "wowwwnsnww"},
		{"never opened", with(func(*Budget) {}), "wwwwwww", "wwwwwww"},
		{"opened again", with(func(c *Budget) { c.Within, c.Again = true, true }), "wswowwww", "wswownsnwww"},
		{"opened again where thoughts come once", with(within), "wswowwww", "wswowwww"},
		{"no opening is known", with(func(c *Budget) { c.Open = nil }), "owwwww", "owwwww"},
		{"opened twice within", with(within), "owwwww", "owwnsnwww"},
	}
	letters := map[int32]string{open: "o", shut: "s", nl: "n", word: "w", end: "e"}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			e := NewEdits(Defaults(), 100, nil, nil, &test.close)
			got, model := "", test.model
			var announced []bool // before each token, whether one of the five from there on may be forced
			for model != "" {
				now := e.Now()
				if now.Len() > 0 && !e.Late(2) {
					t.Fatalf("after %q something is forced that was not announced", got)
				}
				announced = append(announced, e.Late(5))
				if now.Len() > 0 && slices.Contains(announced[max(len(announced)-5, 0):], false) {
					t.Fatalf("after %q something is forced that was not announced four tokens before", got)
				}
				token := int32(strings.Index("-osnwe", model[:1]))
				if now.Len() > 0 {
					token = now.Token[0]
				} else {
					model = model[1:]
				}
				got += letters[token]
				early := e.Late(2)
				if e.Append(token); e.Now().Len() > 0 && !early {
					t.Fatalf("after %q something is forced that was not announced a step before", got)
				}
			}
			if got != test.want {
				t.Errorf("%+v, the model draws %q: got %q, want %q", test.close, test.model, got, test.want)
			}
		})
	}
}

// Nothing that is asked of logits keeps a forced token from being drawn, and it counts for penalties as any other.
func TestForcedTokens(t *testing.T) {
	p := Defaults()
	p.LogitBias = map[int32]float32{2: -inf, 3: math.MaxFloat32}
	p.RepetitionPenalty, p.FrequencyPenalty = 2, 1
	c := &Budget{Closing: []int32{2, 2}, Within: true, Shut: TokenMark(2)}
	e := NewEdits(p, 4, []int32{2, 3}, []int32{2}, c)
	logits := []float32{1, -2, -30, 4}
	for step := range 2 {
		got := e.apply(logits)
		if largest := slices.Max(got); got[2] != largest || math.IsInf(float64(largest/0.01), 0) || largest/0.01-got[3]/0.01 < 1e6 {
			t.Errorf("step %d: got %v, want the third to stand out", step, got)
		}
		e.Append(2)
	}
	e.LetGo()
	if got, want := fmt.Sprint(e.apply(logits)), fmt.Sprint(penalised(p, logits, []int32{2, 3}, []int32{2, 2}, nil)); got != want {
		t.Errorf("behind them: got %v, want %v", got, want)
	}
}
