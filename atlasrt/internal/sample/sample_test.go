package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

func TestIsGreedy(t *testing.T) {
	cases := []struct {
		temperature, topP float32
		want              bool
	}{{0, 1, true}, {1, 0, true}, {1, 1, false}, {0.5, 0.1, false}}
	for _, c := range cases {
		p := Defaults()
		p.Temperature, p.TopP = c.temperature, c.topP
		if got := p.IsGreedy(); got != c.want {
			t.Errorf("temperature %g, top_p %g: got %v, want %v", c.temperature, c.topP, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	with := func(change func(p *Params)) Params {
		p := Defaults()
		change(&p)
		return p
	}
	cases := []struct {
		name   string
		params Params
		want   string // the field, or nothing
	}{
		{"defaults", Defaults(), ""},
		{"greedy", Greedy(), ""},
		{"everything", Params{
			Temperature: 2, TopP: 0.5, MinP: 0.1, TopK: 40, RepetitionPenalty: 1.1, FrequencyPenalty: -2, PresencePenalty: 2,
			LogitBias: map[int32]float32{9: -100, 0: -inf}, Seed: -1,
		}, ""},
		{"negative temperature", with(func(p *Params) { p.Temperature = -0.1 }), "temperature"},
		{"temperature not a number", with(func(p *Params) { p.Temperature = nan }), "temperature"},
		{"infinite temperature", with(func(p *Params) { p.Temperature = inf }), "temperature"},
		{"top_p below 0", with(func(p *Params) { p.TopP = -0.01 }), "top_p"},
		{"top_p over 1", with(func(p *Params) { p.TopP = 1.01 }), "top_p"},
		{"top_p not a number", with(func(p *Params) { p.TopP = nan }), "top_p"},
		{"min_p", with(func(p *Params) { p.MinP = 1.5 }), "min_p"},
		{"top_k", with(func(p *Params) { p.TopK = -1 }), "top_k"},
		{"repetition 0", with(func(p *Params) { p.RepetitionPenalty = 0 }), "repetition_penalty"},
		{"frequency", with(func(p *Params) { p.FrequencyPenalty = -inf }), "frequency_penalty"},
		{"presence", with(func(p *Params) { p.PresencePenalty = nan }), "presence_penalty"},
		{"bias of no token", with(func(p *Params) { p.LogitBias = map[int32]float32{10: 1} }), "logit_bias"},
		{"bias of a negative token", with(func(p *Params) { p.LogitBias = map[int32]float32{-1: 1} }), "logit_bias"},
		{"bias not a number", with(func(p *Params) { p.LogitBias = map[int32]float32{1: nan} }), "logit_bias"},
		{"bias +inf", with(func(p *Params) { p.LogitBias = map[int32]float32{1: inf} }), "logit_bias"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			err := test.params.Validate(10)
			var field *option.Error
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%+v: got %v, want no error", test.params, err)
			case test.want != "" && (!errors.As(err, &field) || string(field.Option) != test.want):
				t.Errorf("%+v: got %v, want an error about %s", test.params, err, test.want)
			}
		})
	}
}

// apply is what the edits do to logits, as op.Sample says.
func (e *Edits) apply(logits []float32) []float32 {
	out := slices.Clone(logits)
	now := e.Now()
	for i, token := range now.Token {
		z := out[token] + now.Bias[i]
		if z > 0 {
			z /= now.Factor[i]
		} else {
			z *= now.Factor[i]
		}
		out[token] = z + now.Offset[i]
	}
	return out
}

// penalised is the same from the formulas, over all tokens at once.
func penalised(p Params, logits []float32, prompt, generated, hold []int32) []float32 {
	out := slices.Clone(logits)
	for i := range out {
		token := int32(i)
		out[i] += p.LogitBias[token]
		if slices.Contains(hold, token) {
			out[i] = -inf
		}
		if slices.Contains(prompt, token) || slices.Contains(generated, token) {
			if out[i] > 0 {
				out[i] /= p.RepetitionPenalty
			} else {
				out[i] *= p.RepetitionPenalty
			}
		}
		count := 0
		for _, g := range generated {
			if g == token {
				count++
			}
		}
		if count > 0 {
			out[i] += -p.FrequencyPenalty*float32(count) - p.PresencePenalty
		}
	}
	return out
}

func TestEdits(t *testing.T) {
	const vocab = 12
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := Defaults()
		if r.IntN(2) == 0 {
			p.RepetitionPenalty = 0.5 + r.Float32()
		}
		if r.IntN(2) == 0 {
			p.FrequencyPenalty = r.Float32() - 0.3
		}
		if r.IntN(2) == 0 {
			p.PresencePenalty = r.Float32() - 0.3
		}
		for range r.IntN(3) {
			if p.LogitBias == nil {
				p.LogitBias = map[int32]float32{}
			}
			p.LogitBias[r.Int32N(vocab)] = 4*r.Float32() - 2
		}
		tokens := func(n int) []int32 {
			out := make([]int32, n)
			for i := range out {
				out[i] = r.Int32N(vocab)
			}
			return out
		}
		prompt, hold := tokens(r.IntN(6)), tokens(r.IntN(3))
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = 6*r.Float32() - 3
		}
		e := NewEdits(p, vocab, prompt, hold, nil)
		var generated []int32
		for step := range 8 {
			if step == 4 {
				e.LetGo()
				hold = nil
			}
			input := fmt.Sprintf("seed %d: %+v prompt %v generated %v hold %v", seed, p, prompt, generated, hold)
			if got, want := e.apply(logits), penalised(p, logits, prompt, generated, hold); !slices.Equal(got, want) {
				t.Fatalf("%s:\ngot  %v\nwant %v", input, got, want)
			}
			if e != nil && len(e.at) != e.Now().Len() {
				t.Fatalf("%s: %d entries for %d tokens", input, e.Now().Len(), len(e.at))
			}
			token := r.Int32N(vocab)
			generated = append(generated, token)
			e.Append(token)
		}
	}
}

func TestNoEditsWithoutReason(t *testing.T) {
	if e := NewEdits(Defaults(), 10, []int32{1, 2, 3}, nil, nil); e != nil {
		t.Errorf("plain sampling: got %+v, want nil", e)
	}
}

// Log-probabilities are finite, whatever logits are (T035).
func TestLogProbs(t *testing.T) {
	ln := func(p float64) float32 { return float32(math.Log(p)) }
	cases := []struct {
		name   string
		logits []float32
		chosen int32
		top    int
		want   TokenLogProb
	}{
		{"even", []float32{3, 3, 3, 3}, 2, 2, TokenLogProb{2, ln(0.25), []Choice{{0, ln(0.25)}, {1, ln(0.25)}}}},
		{"shifted", []float32{ln(1) + 40, ln(2) + 40, ln(5) + 40}, 0, 3, TokenLogProb{0, ln(0.125), []Choice{{2, ln(0.625)}, {1, ln(0.25)}, {0, ln(0.125)}}}},
		{"none asked", []float32{0, 0}, 1, 0, TokenLogProb{1, ln(0.5), nil}},
		{"more than there are", []float32{0, 0}, 1, 9, TokenLogProb{1, ln(0.5), []Choice{{0, ln(0.5)}, {1, ln(0.5)}}}},
		{"huge", []float32{3e38, -3e38}, 1, 1, TokenLogProb{1, Floor, []Choice{{0, 0}}}},
		{"ruled out", []float32{0, -inf}, 1, 2, TokenLogProb{1, Floor, []Choice{{0, 0}, {1, Floor}}}},
		{"one is not a number", []float32{nan, 1, 1}, 0, 2, TokenLogProb{0, Floor, []Choice{{1, ln(0.5)}, {2, ln(0.5)}}}},
		{"nothing is a number", []float32{nan, nan}, 0, 1, TokenLogProb{0, Floor, []Choice{{0, Floor}}}},
		{"all ruled out", []float32{-inf, -inf}, 0, 1, TokenLogProb{0, Floor, []Choice{{0, Floor}}}},
		{"no such token", []float32{0, 0}, -1, 0, TokenLogProb{-1, Floor, nil}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			got := LogProbs(test.logits, test.chosen, test.top)
			near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }
			equal := got.Token == test.want.Token && near(got.LogProb, test.want.LogProb) &&
				slices.EqualFunc(got.Top, test.want.Top, func(a, b Choice) bool { return a.Token == b.Token && near(a.LogProb, b.LogProb) })
			if !equal {
				t.Errorf("LogProbs(%v, %d, %d): got %+v, want %+v", test.logits, test.chosen, test.top, got, test.want)
			}
		})
	}
}

// Over the whole vocabulary probabilities sum to 1, and the order is that of a plain sort.
func TestLogProbsOfAVocabulary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	logits := make([]float32, 50_000)
	for i := range logits {
		logits[i] = float32(r.IntN(400)) / 16
	}
	got := LogProbs(logits, 0, len(logits))
	sum := 0.0
	for i, c := range got.Top {
		sum += math.Exp(float64(c.LogProb))
		if i > 0 && (c.LogProb > got.Top[i-1].LogProb || logits[c.Token] == logits[got.Top[i-1].Token] && c.Token < got.Top[i-1].Token) {
			t.Fatalf("entry %d: %+v stands behind %+v", i, c, got.Top[i-1])
		}
	}
	if math.Abs(sum-1) > 1e-6 {
		t.Errorf("probabilities sum to %v, want 1", sum)
	}
}
