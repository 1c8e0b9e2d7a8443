package sample

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A copy goes on by itself, in memory that was used before, and what it was made of stays.
func TestCopy(t *testing.T) {
	const vocab = 12
	logits := make([]float32, vocab)
	var to Edits
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		p := Defaults()
		if r.IntN(3) > 0 {
			p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty = 0.5+r.Float32(), r.Float32(), r.Float32()
		}
		p.LogitBias = map[int32]float32{r.Int32N(vocab): r.Float32()}
		var c *Budget
		if r.IntN(2) == 0 {
			c = &Budget{Most: r.IntN(6), Closing: []int32{1, 2}, Within: true, Shut: TokenMark(3), Open: TokenMark(4), Again: r.IntN(2) == 0}
		}
		for i := range logits {
			logits[i] = 6*r.Float32() - 3
		}
		prompt, hold := []int32{r.Int32N(vocab), r.Int32N(vocab)}, []int32{r.Int32N(vocab)}
		e, same := NewEdits(p, vocab, prompt, hold, c), NewEdits(p, vocab, prompt, hold, c)
		for step := range 12 {
			e.Copy(&to)
			alike := NewEdits(p, vocab, prompt, hold, c)
			for _, token := range prompt[2:] {
				alike.Append(token)
			}
			if step > 6 {
				alike.LetGo()
			}
			for range 3 {
				token := r.Int32N(vocab)
				to.Append(token)
				alike.Append(token)
				if r.IntN(4) == 0 {
					to.LetGo()
					alike.LetGo()
				}
				if got, want := to.apply(logits), alike.apply(logits); !slices.Equal(got, want) || to.Late(2) != alike.Late(2) {
					t.Fatalf("seed %d, step %d: the copy gives %v, want %v", seed, step, got, want)
				}
			}
			if got, want := e.apply(logits), same.apply(logits); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: behind the copy %v, want %v", seed, step, got, want)
			}
			token := r.Int32N(vocab)
			prompt = append(prompt, token)
			e.Append(token)
			same.Append(token)
			if step == 6 {
				e.LetGo()
				same.LetGo()
			}
		}
	}
}

// Entries that are kept stay as they were.
func TestKeep(t *testing.T) {
	p := Defaults()
	p.FrequencyPenalty = 1
	e := NewEdits(p, 12, nil, nil, nil)
	var to Entries
	e.Append(5)
	first := e.Now().Keep(&to)
	e.Append(5)
	second := e.Now().Keep(&to)
	e.Append(7)
	if !slices.Equal(first.Offset, []float32{-1}) || !slices.Equal(second.Offset, []float32{-2}) || !slices.Equal(to.Token, []int32{5, 5}) {
		t.Errorf("got %v and %v, in all %v", first, second, to)
	}
}
