package engine

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Texts of the fake model's tokens: most are a letter, some several, so that marks have more than one spelling.
func fakePiece(token int32) []byte {
	switch token {
	case 37:
		return []byte("ab")
	case 38:
		return []byte("bc")
	case 39:
		return []byte("a")
	}
	return []byte{byte('a' + token%12)}
}

const fakeOpen, fakeShut = "d", "bc"

func fakeBudget(after int, within bool) *sample.Budget {
	mark := func(text string, leads bool) *sample.Mark { return sample.TextMark(text, fakeVocab, fakePiece, leads) }
	return &sample.Budget{Most: after, Closing: []int32{13, 38, 13}, Within: within, Open: mark(fakeOpen, false), Shut: mark(fakeShut, false)}
}

// closes is the token that is forced behind what was generated, from the text of it all.
func closes(c *sample.Budget, generated []int32) (token int32, ok bool) {
	if c == nil {
		return 0, false
	}
	from := 0 // tokens before thoughts
	if !c.Within {
		text := ""
		for from = 0; !strings.Contains(text, fakeOpen); from++ {
			if from == len(generated) {
				return 0, false
			}
			text += string(fakePiece(generated[from]))
		}
	}
	spent, text := generated[from:], ""
	for _, token := range spent[:min(len(spent), c.Most)] {
		if text += string(fakePiece(token)); strings.Contains(text, fakeShut) {
			return 0, false
		}
	}
	if due := len(spent) - c.Most; due >= 0 && due < len(c.Closing) {
		return c.Closing[due], true
	}
	return 0, false
}

// Tokens that close thoughts come where the budget is used up, whatever runs beside the request (T060).
func TestT060ThoughtsAreClosed(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 5))
	var requests []Request
	for i := range 14 {
		p := sample.Defaults()
		p.Seed, p.Temperature = int64(r.Uint64()), []float32{0, 0.01, 0.8, 1.5}[i%4]
		if i%3 == 0 {
			p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty = 1.3, 0.5, 0.25
		}
		if i%5 == 0 {
			p.LogitBias = map[int32]float32{13: -100, 7: 5}
		}
		q := Request{Prompt: random(r, 1+r.IntN(12)), MaxTokens: 30, LogProbs: -1, Sampling: p}
		if i%7 != 6 {
			q.Budget = fakeBudget([]int{0, 1, 2, 9, 16}[i%5], i%2 == 0)
		}
		if i%6 == 5 {
			q.MinTokens, q.End = 10, random(r, 4)
		}
		if i%6 == 4 { // whose logits are read: no step goes ahead until it ends
			q.LogProbs, q.MaxTokens = 1, 12
		}
		requests = append(requests, q)
	}
	for _, test := range circumstances() {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.change)
			closed, free := 0, 0
			for i, events := range f.together(t, requests...) {
				q := requests[i]
				got, want := read(events), f.model.drawn(q)
				if !slices.Equal(got.tokens, want) {
					t.Errorf("%+v:\ngot  %v\nwant %v", q, got.tokens, want)
				}
				for j, l := range got.logProbs { // are of the model's own logits
					logits := f.model.logits(append(slices.Clone(q.Prompt), want[:j]...))
					if w := sample.LogProbs(logits, want[j], 1); !sameLogProb(l, w) {
						t.Errorf("%+v, token %d: got %+v, want %+v", q, j, l, w)
					}
				}
				at := slices.IndexFunc(want, func(v int32) bool { return v == 13 })
				if at >= 0 && at+3 <= len(want) && slices.Equal(want[at:at+3], []int32{13, 38, 13}) {
					closed++
				} else {
					free++
				}
			}
			if closed < 3 || free < 3 {
				t.Errorf("%d answers had their thoughts closed and %d not: the test does not test", closed, free)
			}
			if f.settle(t); test.check != nil {
				test.check(t, f)
			}
		})
	}
}

// Far from its budget an answer costs what any other does: its steps need no late inputs.
func TestBudgetThatIsFarAway(t *testing.T) {
	c := fakeBudget(10, true)
	q := newTask(Request{Prompt: []int32{1}, MaxTokens: 40, Sampling: sample.Defaults(), Budget: c}, fakeVocab, 1)
	var late []int
	for i := range 20 {
		if q.late() {
			late = append(late, i)
		}
		token := int32(5)
		if now := q.edits.Now(); now.Len() > 0 {
			token = now.Token[0]
		}
		q.edits.Append(token)
	}
	if want := []int{9, 10, 11, 12}; !slices.Equal(late, want) {
		t.Errorf("got late inputs for tokens %v, want %v", late, want)
	}
}
