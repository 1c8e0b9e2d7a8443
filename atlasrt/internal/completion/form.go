package completion

import (
	"context"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
)

// grammarBytes is how much memory grammars take at most that may be asked for again.
const grammarBytes = 256 << 20

// Prepare makes what the first request with a form would wait for. It takes a look at every token.
func (g *Generator) Prepare() { g.grammars() }

// grammars are those of the model.
func (g *Generator) grammars() *grammar.Cache {
	g.once.Do(func() {
		t := g.Tokenizer
		g.cache = grammar.NewCache(match.NewVocabulary(t.Bytes(int(g.Vocab)), t.IsSpecial), grammar.Limits{}, grammarBytes)
	})
	return g.cache
}

// Hold compiles what the answers to prompts are held to, if anything, so that Start finds it, and gives the notes on it. Errors are an
// *option.Error, a *grammar.Error whose Name is that of the form or tool at fault, a *grammar.Fault, or that of ctx.
func (g *Generator) Hold(ctx context.Context, prompts []Prompt, o *Options) (notes []grammar.Note, err error) {
	for i := range prompts {
		p := prompts[i]
		p.Thinking = g.Within(&p, o)
		held, err := g.held(ctx, &p, o)
		if err != nil {
			return nil, err
		}
		if held != nil { // whether a prompt ends within thoughts or not, the form behind them is the same
			notes = held.Notes()
		}
	}
	return notes, nil
}

// hold is where answers to a prompt begin in their grammar; nil: any will do.
func (g *Generator) hold(ctx context.Context, p *Prompt, o *Options) (engine.Grammar, error) {
	held, err := g.held(ctx, p, o)
	if held == nil || err != nil {
		return nil, err
	}
	return engine.Following(held.Start()), nil
}

// held is the grammar of answers to a prompt; nil: any will do.
func (g *Generator) held(ctx context.Context, p *Prompt, o *Options) (*grammar.Grammar, error) {
	form, err := g.form(p, o)
	if form == nil || err != nil {
		return nil, err
	}
	return g.grammars().Get(ctx, *form)
}

// form is what an answer to a prompt must be, thoughts and all; nil: anything.
func (g *Generator) form(p *Prompt, o *Options) (*grammar.Spec, error) {
	text, err := g.text(o)
	if text == nil || err != nil || !o.Chat {
		return text, err
	}
	whole := g.Formats.Reasoning.Before(*text, p.Thinking, !o.Thinking.Off())
	return &whole, nil
}

// text is what an answer must be behind its thoughts; nil: anything. Where the model may call tools and need not, its text has the form that
// is asked for, or it calls.
func (g *Generator) text(o *Options) (*grammar.Spec, error) {
	choice := o.Calls
	choice.Single = choice.Single || o.OneCall
	must := choice.Required || choice.Name != ""
	switch {
	case o.Score || o.Form == nil && !must && !slices.ContainsFunc(o.Tools, strict):
		return nil, nil
	case o.IgnoreEnd && len(o.StopTokens) == 0 && (o.Form != nil || must):
		return nil, option.Invalid(option.IgnoreEnd, "is true, but an answer that has a form ends with it (leave it out)")
	case g.Formats.Tools == nil && (must || o.Form == nil):
		return nil, option.Invalid(option.Tools, "cannot be held to: how this model writes calls is not known (start the server with --tool-call-parser)")
	}
	var form grammar.Spec
	switch calls := g.Formats.Tools; {
	case must || o.Form == nil:
		form = calls.Form(o.Tools, choice)
	case len(o.Tools) == 0 || calls == nil:
		form = g.noted(*o.Form)
	default:
		choice.Required = true
		form = grammar.Spec{Kind: grammar.Either, Parts: []grammar.Spec{g.noted(*o.Form), calls.Form(o.Tools, choice)}}
	}
	return &form, nil
}

// noted is a form whose values are written as the model's server has them, where the request does not say.
func (g *Generator) noted(form grammar.Spec) grammar.Spec {
	if form.Kind == grammar.Schema && form.Notation == "" {
		form.Notation = g.Notation
	}
	return form
}

func strict(tool chat.Tool) bool { return tool.Strict }
