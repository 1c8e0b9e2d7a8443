package engine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Only tokens that a request allows come, and bad words do not, whether steps draw one token or several.
func TestAllowedTokensAndBadWords(t *testing.T) {
	some := []int32{3, 8, 9, 20, 33, 34}
	cases := []struct {
		name   string
		params func(*sample.Params)
	}{
		{"allowed", func(p *sample.Params) { p.Allowed = some }},
		{"allowed, drawn", func(p *sample.Params) { p.Allowed, p.Temperature, p.Seed = some, 1.5, 9 }},
		{"one allowed", func(p *sample.Params) { p.Allowed = []int32{fakeVocab - 1} }},
		{"bad words", func(p *sample.Params) { p.BadWords = [][]int32{{some[0]}, {some[1]}} }},
		{"bad words among those allowed", func(p *sample.Params) {
			p.Allowed = some
			for _, first := range some {
				for _, second := range some[1:] {
					p.BadWords = append(p.BadWords, []int32{first, second})
				}
			}
		}},
	}
	for _, draws := range []int{1, 3} {
		var change func(*Config, *fixture)
		if draws > 1 {
			change = drafting(draws, nil)
		}
		f := newFixture(t, change)
		for _, c := range cases {
			r := greedy([]int32{4, 2}, 40)
			c.params(&r.Sampling)
			want, got := f.model.drawn(r), f.ask(t, r)
			if got.err != nil || !slices.Equal(got.tokens, want) {
				t.Errorf("%s, %d draws: got %v, %v, want %v", c.name, draws, got.tokens, got.err, want)
			}
			for _, token := range got.tokens {
				if len(r.Sampling.Allowed) > 0 && !slices.Contains(r.Sampling.Allowed, token) {
					t.Errorf("%s, %d draws: token %d came and is not allowed", c.name, draws, token)
				}
			}
		}
	}
}

// A bad word of a token that must come by the grammar ends the request with an error, and so does a grammar without allowed tokens.
func TestGrammarsWithoutAllowedTokens(t *testing.T) {
	f := newFixture(t, nil)
	g := fakeGrammar{}
	for g.only() < 0 {
		g.seen++
	}
	other := (g.only() + 1) % fakeVocab
	for _, change := range []func(*sample.Params){
		func(p *sample.Params) { p.BadWords = [][]int32{{g.only()}} },
		func(p *sample.Params) { p.Allowed = []int32{other} },
	} {
		r := greedy([]int32{4, 2}, 5)
		r.Grammar = Following(g)
		change(&r.Sampling)
		if got := f.ask(t, r); got.finish != FinishError || len(got.tokens) > 0 {
			t.Errorf("%+v: got %v, %v, want an error", r.Sampling, got.tokens, got.finish)
		}
	}
}

// Tokens beyond the logits are refused before they reach a device (T037).
func TestT037TokensOfSamplers(t *testing.T) {
	f := newFixture(t, nil)
	for _, token := range []int32{-1, fakeVocab, 1 << 30} {
		cases := map[option.Name]func(*sample.Params){
			option.BadWords:      func(p *sample.Params) { p.BadWords = [][]int32{{1, token}} },
			option.AllowedTokens: func(p *sample.Params) { p.Allowed = []int32{1, token} },
		}
		for name, change := range cases {
			r := greedy([]int32{4, 2}, 5)
			change(&r.Sampling)
			_, err := f.Submit(t.Context(), r)
			if e, ok := err.(*option.Error); !ok || e.Option != name {
				t.Errorf("%s with token %d: got %v, want it refused", name, token, err)
			}
		}
	}
}

// With every sampler a request gets the tokens that it gets alone, whatever runs beside it, is preempted or drafted (T160).
func TestT160SamplersBesideOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 5))
	var requests []Request
	for i := range 16 {
		p := sample.Defaults()
		p.Temperature, p.Seed = []float32{0, 1.5}[i%2], int64(r.Uint64())
		switch i / 2 % 4 {
		case 0:
			p.DRY.Multiplier, p.DRY.AllowedLength, p.LZPenalty = 2, 1, 0.1
		case 1:
			p.RepetitionPenalty, p.FrequencyPenalty, p.Window = 1.5, 0.5, 5
		case 2:
			p.Temperature, p.TopNSigma, p.XTCProbability, p.XTCThreshold = 1.5, 2, 0.5, 0.02
		case 3:
			p.MinEntropy, p.Allowed = 2, random(r, fakeVocab)
		}
		requests = append(requests, Request{Prompt: random(r, 20+r.IntN(40)), MaxTokens: 30, LogProbs: -1, Sampling: p})
	}
	var want [][]int32
	alone := newFixture(t, nil)
	for _, q := range requests {
		got := alone.ask(t, q)
		if got.err != nil {
			t.Fatal(got.err)
		}
		plain := q
		plain.Sampling = sample.Defaults()
		plain.Sampling.Temperature, plain.Sampling.Seed = q.Sampling.Temperature, q.Sampling.Seed
		if slices.Equal(got.tokens, alone.model.drawn(plain)) {
			t.Errorf("%+v: the sampler changes nothing", q.Sampling)
		}
		want = append(want, got.tokens)
	}
	for _, test := range circumstances() {
		for _, change := range []func(*Config, *fixture){test.change, drafting(3, test.change)} {
			f := newFixture(t, change)
			for i, events := range f.together(t, requests...) {
				if got := read(events); !slices.Equal(got.tokens, want[i]) {
					t.Errorf("%s, %+v:\ngot  %v %v\nwant %v", test.name, requests[i].Sampling, got.tokens, got.err, want[i])
				}
			}
		}
	}
}
