package completion

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// worded are the Params of a request with its texts in tokens: those that do not come, and those that break repetitions.
func (g *Generator) worded(ctx context.Context, o *Options) (p sample.Params, err error) {
	p = g.Params(o)
	words := slices.Clone(p.BadWords)
	for _, text := range o.BadWords {
		spelled, err := g.spellings(ctx, text)
		if e, ok := errors.AsType[*tokenizer.Intractable](err); ok {
			return p, option.Invalid(option.BadWords, "cannot be read by this model's tokenizer: %s", e)
		}
		if err != nil {
			return p, err
		}
		words = append(words, spelled...)
	}
	p.BadWords = words
	if p.DRY.Multiplier > 0 {
		texts := o.Breakers
		if texts == nil {
			texts = sample.UsualBreakers()
		}
		p.DRY.Breakers = g.breaking(texts)
	}
	return p, nil
}

// spellings are how a text is usually spelled at the beginning of an answer and behind a blank.
func (g *Generator) spellings(ctx context.Context, text string) (all [][]int32, err error) {
	text = strings.TrimLeft(text, " ")
	for _, text := range []string{text, " " + text} {
		tokens, err := g.Tokenizer.EncodeWithin(ctx, text, true, math.MaxInt)
		if err != nil {
			return nil, err
		}
		if len(tokens) > 0 && !slices.ContainsFunc(all, func(other []int32) bool { return slices.Equal(other, tokens) }) {
			all = append(all, tokens)
		}
	}
	return all, nil
}

// mostBreakers is how many sets of breakers are kept for requests to come.
const mostBreakers = 16

// breaking finds texts among tokens. What is made for one request is kept for the next: it takes a look at every token.
func (g *Generator) breaking(texts []string) *sample.Breakers {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	key := fmt.Sprintf("%q", texts)
	if b := g.breakers[key]; b != nil {
		return b
	}
	b := sample.NewBreakers(texts, g.Tokenizer.Bytes(int(g.Vocab)))
	if g.breakers == nil || len(g.breakers) >= mostBreakers {
		g.breakers = map[string]*sample.Breakers{}
	}
	g.breakers[key] = b
	return b
}
