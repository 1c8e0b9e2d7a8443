package completion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// worded are the Params of a request with its texts in tokens: those that do not come, and those that break repetitions.
func (g *Generator) worded(o *Options) sample.Params {
	p := g.Params(o)
	words := slices.Clone(p.BadWords)
	for _, text := range o.BadWords {
		words = append(words, g.spellings(text)...)
	}
	p.BadWords = words
	if p.DRY.Multiplier > 0 {
		texts := o.Breakers
		if texts == nil {
			texts = sample.UsualBreakers()
		}
		p.DRY.Breakers = g.breaking(texts)
	}
	return p
}

// spellings are how a text is usually spelled at the beginning of an answer and behind a blank.
func (g *Generator) spellings(text string) (all [][]int32) {
	text = strings.TrimLeft(text, " ")
	for _, text := range []string{text, " " + text} {
		tokens := g.Tokenizer.Encode(text, true)
		if len(tokens) > 0 && !slices.ContainsFunc(all, func(other []int32) bool { return slices.Equal(other, tokens) }) {
			all = append(all, tokens)
		}
	}
	return all
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
