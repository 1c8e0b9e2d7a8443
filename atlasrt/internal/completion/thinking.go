package completion

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Resolve is what holds of the thoughts of a conversation whose answer has so many tokens at most, 0 where the request does not say:
// what its template is told, and what Options.Thinking must be.
func (g *Generator) Resolve(asked chat.Thinking, maxTokens int) chat.Thinking {
	return g.Thinking.Resolve(asked, g.Efforts, min(maxTokens, g.MaxContext))
}

// Params are the sampling of a request: of a conversation that is answered without thoughts, over defaults of its own.
func (g *Generator) Params(o *Options) sample.Params {
	if o.Chat && o.Thinking.Off() && g.Plain != nil {
		return o.Sampling.Over(*g.Plain)
	}
	return o.Sampling.Over(g.Defaults)
}

// Within tells whether a prompt ends within thoughts, so that the answer goes on with them.
func (g *Generator) Within(p *Prompt, o *Options) bool {
	r := g.Formats.Reasoning
	return p.Thinking || o.Chat && r != nil && chat.Prompt{Text: p.Text, Data: p.Data}.Within(r.Open, r.Close)
}

// budget bounds the thoughts of an answer of so many tokens at most; nil where nothing does.
func (g *Generator) budget(p *Prompt, o *Options, most int) *sample.Budget {
	if !o.Chat || g.Formats.Reasoning == nil || o.Thinking.Budget == nil {
		return nil
	}
	thoughts := *o.Thinking.Budget
	if thoughts >= most && g.Thinking.Floor == 0 {
		return nil
	}
	b := *g.anyBudget(o.KeepSpecial)
	if g.Thinking.Floor > 0 && o.MaxTokens > 0 {
		thoughts = min(thoughts, most-g.Thinking.Floor-len(b.Closing))
	}
	b.Most, b.Within = max(thoughts, 0), p.Thinking
	return &b
}

// anyBudget is what all budgets have in common where control tokens are shown as text, or where they are not. It is made when it is needed
// first: it takes a look at every token.
func (g *Generator) anyBudget(keepSpecial bool) *sample.Budget {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if b := g.budgets[keepSpecial]; b != nil {
		return b
	}
	t, r := g.Tokenizer, g.Formats.Reasoning
	mark := func(text string, leads bool) (mark *sample.Mark, control bool) {
		if id, ok := t.ID(text); ok && t.IsSpecial(id) {
			return sample.TokenMark(id), true
		}
		return sample.TextMark(text, g.Vocab, func(token int32) []byte {
			if !keepSpecial && t.IsSpecial(token) {
				return nil
			}
			return t.TokenBytes(token)
		}, leads), false
	}
	b := &sample.Budget{Closing: t.Encode(g.closingText(), true)}
	b.Open, b.Again = mark(r.Open, true)
	b.Shut, _ = mark(r.Close, false)
	if g.budgets == nil {
		g.budgets = map[bool]*sample.Budget{}
	}
	g.budgets[keepSpecial] = b
	return b
}

// closingText is what is put at the end of thoughts that reach their budget.
func (g *Generator) closingText() string {
	mark := g.Formats.Reasoning.Close
	switch text := g.Thinking.Close; {
	case text == "":
		return "\n" + mark + "\n\n"
	case !strings.Contains(text, mark):
		return text + mark + "\n\n"
	default:
		return text
	}
}
