package completion

import (
	"fmt"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Texts of a request reach the engine as tokens: bad words in both of their spellings, and breakers where DRY is on.
func TestTextsBecomeTokens(t *testing.T) {
	tok := thoughtfulTokenizer(t, false)
	cases := []struct {
		options  Options
		words    string
		breakers int // texts; -1: there are none
	}{
		{Options{}, "[]", -1},
		{Options{BadWords: []string{"ab", " c"}}, "[[97 98] [32 97 98] [99] [32 99]]", -1},
		{Options{BadWords: []string{"c"}, Sampling: sample.Given{BadWords: [][]int32{{7}}}}, "[[7] [99] [32 99]]", -1},
		{Options{Breakers: []string{"x"}}, "[]", -1},
		{Options{Sampling: sample.Given{DRYMultiplier: new(float32(1))}}, "[]", len(sample.UsualBreakers())},
		{Options{Breakers: []string{"x", "yz"}, Sampling: sample.Given{DRYMultiplier: new(float32(1))}}, "[]", 2},
		{Options{Breakers: []string{}, Sampling: sample.Given{DRYMultiplier: new(float32(1))}}, "[]", 0},
	}
	for _, c := range cases {
		w := &writer{tokenizer: tok, text: "hm"}
		g := &Generator{Engine: w, Tokenizer: tok, End: []int32{endToken}, MaxContext: 200, Vocab: 259, Defaults: sample.Greedy()}
		c.options.Choices = 2
		s, err := g.Start(t.Context(), []Prompt{promptOf("a")}, c.options)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		for i, r := range w.requests {
			breakers := -1
			if b := r.Sampling.DRY.Breakers; b != nil {
				breakers = len(b.Texts)
			}
			if got := fmt.Sprint(r.Sampling.BadWords); got != c.words || breakers != c.breakers {
				t.Errorf("%+v, choice %d: got words %s and %d breakers, want %s and %d", c.options, i, got, breakers, c.words, c.breakers)
			}
			if r.Sampling.DRY.Breakers != w.requests[0].Sampling.DRY.Breakers {
				t.Errorf("%+v: choice %d has breakers of its own", c.options, i)
			}
		}
	}
}
