// Package completion turns text requests into tokens for the engine and the engine's tokens back into text.
//
// Everything that is about text lives here: tokenizing, stop strings, code points that span tokens, thoughts and calls of tools. A
// token goes through a chain of stages: it becomes text, which ends at a stop string, and is split into thoughts, text and calls
// (package parse). Text is handed out once and never taken back; no part of a stop string ever is. The events of an answer are a
// function of its tokens, whatever steps they come in.
package completion

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// Engine is what runs requests; *engine.Engine is one.
type Engine interface {
	Submit(ctx context.Context, requests ...engine.Request) (*engine.Inbox, error)
}

// Generator answers requests with one model.
type Generator struct {
	Engine     Engine               // that computes
	Tokenizer  *tokenizer.Tokenizer // of the model
	End        []int32              // tokens that end an answer
	MaxContext int                  // tokens of a prompt and its answer
	Vocab      int32                // logits per row; token ids are less
	Defaults   sample.Params        // where a request says nothing
	Plain      *sample.Params       // in place of Defaults where a conversation is answered without thoughts; nil: Defaults
	Formats    Formats              // in which conversations are answered
	Thinking   chat.ThinkingPolicy  // of conversations
	Efforts    []string             // words for how hard to think that the model's template reads
	ToolTokens int                  // most tokens of an answer to a request with tools that has no bound of its own; 0: as many as the context leaves

	Notation grammar.Notation // of JSON in answers that have a form; "": compact

	mutex    sync.Mutex                  // over budgets and breakers
	budgets  map[bool]*sample.Budget     // by Options.KeepSpecial
	breakers map[string]*sample.Breakers // by their texts
	once     sync.Once                   // for cache
	cache    *grammar.Cache              // see grammars
}

// Formats are how a model marks what is no text.
type Formats struct {
	Reasoning *parse.Reasoning // its thoughts; nil: they are not split off
	Tools     *parse.Tools     // its calls of tools; nil: they are not looked for
}

// Options say how one request is answered.
type Options struct {
	MaxTokens      int           // 0: as many as the context leaves
	MinTokens      int           // before an end token may come
	Stop           []string      // texts that end the answer and are no part of it, in whatever the model writes: thoughts and calls, too
	StopTokens     []int32       // tokens that do
	IgnoreEnd      bool          // goes on after the model's own end tokens
	Choices        int           // answers to each prompt, at least 1
	LogProbs       int           // -1: none; else this many likeliest tokens beside the chosen one
	PromptLogProbs bool          // with Echo, also those of the prompt
	Echo           bool          // answers begin with their prompt
	Score          bool          // nothing is generated: what is drawn, with MaxTokens 1, is neither shown nor counted
	KeepSpecial    bool          // shows control tokens as text
	Chat           bool          // the answer is a turn of a conversation: thoughts and calls are split off, as Formats say
	Tools          []chat.Tool   // that the model may call
	OneCall        bool          // an answer is over after its first call
	Calls          parse.Choice  // of Tools: what must be called
	Form           *grammar.Spec // that the text of an answer has, behind thoughts; nil: any. Where Tools may be called, calls may come in its place
	Thinking       chat.Thinking // what holds of the thoughts of a conversation, see Generator.Resolve
	BadWords       []string      // texts that do not come, as far as they are spelled with the usual tokens
	Breakers       []string      // texts that break repetitions, for DRY; nil: sample.UsualBreakers
	Sampling       sample.Given  // seeds of further choices and prompts follow Sampling.Seed
	CacheSalt      string        // as in engine.Request
}

// Prompt is what an answer goes on from.
type Prompt struct {
	Tokens   []int32      // ids
	Text     string       // what Tokens were made of, where they were not given as tokens
	Data     []chat.Range // bytes of Text that a template took from its conversation
	Thinking bool         // it ends within the model's thoughts; Start finds that out for conversations with a Text
}

// TooLong says that a prompt leaves no room for an answer.
type TooLong struct {
	Tokens int // of the prompt
	Limit  int // of a prompt and its answer together
}

// Error gives both counts and says to shorten the prompt.
func (e *TooLong) Error() string {
	return fmt.Sprintf("the prompt has %d tokens, but this model's maximum context length is %d tokens (shorten the prompt)", e.Tokens, e.Limit)
}

// Encode gives the tokens of a text that is no conversation, at most limit; more are a *tokenizer.TooLong. Its control
// tokens count: whoever writes whole prompts means them. special begins it as the model expects, unless it does so itself.
func (g *Generator) Encode(ctx context.Context, text string, special bool, limit int) ([]int32, error) {
	tokens, err := g.Tokenizer.EncodeWithin(ctx, text, true, limit)
	if err != nil {
		return nil, err
	}
	if before := g.Tokenizer.Before(); special && len(before) > 0 && (len(tokens) == 0 || tokens[0] != before[0]) {
		tokens = append(before, tokens...)
	}
	return tokens, nil
}

// Check refuses options that this model cannot take, with an *option.Error, so that no prompt is made in vain.
func (g *Generator) Check(o *Options) error {
	if err := g.Known(option.StopTokens, o.StopTokens); err != nil {
		return err
	}
	p := g.Params(o)
	return p.Validate(g.Vocab)
}

// Known refuses tokens of an option that the model does not have, with an *option.Error.
func (g *Generator) Known(o option.Name, tokens []int32) error {
	for _, token := range tokens {
		if token < 0 || token >= g.Vocab {
			return option.Invalid(o, "holds token %d, the vocabulary has %d", token, g.Vocab)
		}
	}
	return nil
}

// most is how many tokens an answer to a prompt has at most.
func (g *Generator) most(p *Prompt, o *Options) int {
	room := g.MaxContext - len(p.Tokens)
	switch {
	case o.MaxTokens > 0:
		return min(o.MaxTokens, room)
	case len(o.Tools) > 0 && g.ToolTokens > 0:
		return min(g.ToolTokens, room)
	}
	return room
}

// Start begins to answer prompts, all or none. Whoever gets a stream must end it with Close. When ctx ends, so do the answers.
func (g *Generator) Start(ctx context.Context, prompts []Prompt, o Options) (*Stream, error) {
	end := o.StopTokens
	if !o.IgnoreEnd {
		end = slices.Concat(g.End, o.StopTokens)
	}
	s := &Stream{generator: g, options: o, prompts: prompts, ends: end, answers: make([]answer, 0, len(prompts)*o.Choices)}
	requests := make([]engine.Request, 0, cap(s.answers))
	sampling, err := g.worded(ctx, &o)
	if err != nil {
		return nil, err
	}
	for _, p := range prompts {
		if len(p.Tokens) == 0 {
			return nil, option.Invalid(option.Prompt, "has no tokens")
		}
		if len(p.Tokens) >= g.MaxContext {
			return nil, &TooLong{len(p.Tokens), g.MaxContext}
		}
	}
	for _, p := range prompts {
		most := g.most(&p, &o)
		s.usage.Prompt += len(p.Tokens)
		p.Thinking = g.Within(&p, &o)
		budget := g.budget(&p, &o, most)
		held, err := g.hold(ctx, &p, &o)
		if err != nil {
			return nil, err
		}
		for choice := range o.Choices {
			r := engine.Request{
				Prompt: p.Tokens, MaxTokens: most, MinTokens: min(o.MinTokens, most), End: end, Sampling: sampling,
				LogProbs: o.LogProbs, PromptLogProbs: o.PromptLogProbs && choice == 0, Budget: budget, CacheSalt: o.CacheSalt,
				Grammar: held,
			}
			r.Sampling.Seed += int64(len(requests))
			requests = append(requests, r)
			s.answers = append(s.answers, g.answer(&p, &o))
		}
	}
	s.open = len(s.answers)
	ctx, s.cancel = context.WithCancel(ctx)
	if s.inbox, err = g.Engine.Submit(ctx, requests...); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
