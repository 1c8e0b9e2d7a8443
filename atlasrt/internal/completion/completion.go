// Package completion turns text requests into tokens for the engine and the engine's tokens back into text.
//
// Everything that is about text lives here: templates, tokenizing, stop strings, code points that span tokens. Text is
// handed out once and never taken back; no part of a stop string ever is.
package completion

import (
	"context"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// Engine is what runs requests; *engine.Engine is one.
type Engine interface {
	Submit(ctx context.Context, r engine.Request) (<-chan engine.Event, error)
}

// Generator answers requests with one model.
type Generator struct {
	Engine     Engine
	Tokenizer  *tokenizer.Tokenizer
	End        []int32 // tokens that end an answer
	MaxContext int     // tokens of a prompt and its answer
	Vocab      int32   // logits per row
}

// Options say how one request is answered.
type Options struct {
	MaxTokens      int      // 0: as many as the context leaves
	MinTokens      int      // before an end token may come
	Stop           []string // texts that end the answer and are no part of it
	StopTokens     []int32  // tokens that do
	IgnoreEnd      bool     // goes on after the model's own end tokens
	Choices        int      // answers to make, at least 1; their seeds follow each other
	LogProbs       int      // -1: none; else this many likeliest tokens beside the chosen one
	PromptLogProbs bool
	KeepSpecial    bool // shows control tokens as text
	Sampling       sample.Params
	CacheSalt      string
}

// Token is one generated token with its log-probabilities.
type Token struct {
	Bytes   []byte // what it adds to the text where it is shown
	Hidden  bool   // a control token that the text leaves out
	LogProb float32
	Top     []TopToken
}

// TopToken is a token that could have been.
type TopToken struct {
	ID      int32
	Bytes   []byte
	LogProb float32
}

// Finish is why an answer ended; empty while it goes on.
type Finish string

// Reasons to end.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
)

// Chunk is a piece of one answer.
type Chunk struct {
	Choice int
	Text   string
	Tokens []Token // where log-probabilities were asked for: those generated since the last chunk
	Finish Finish  // on the last chunk of a choice
	Match  string  // the stop string that ended it, where one did
	Err    error   // ends the whole stream
}

// Usage counts tokens.
type Usage struct {
	Prompt, Completion int
	Cached             int // of the prompt, taken from the cache
}

// TooLong says that a prompt leaves no room for an answer.
type TooLong struct{ Tokens, Limit int }

func (e *TooLong) Error() string {
	return fmt.Sprintf("the prompt has %d tokens, but this model's maximum context length is %d tokens (shorten the prompt)", e.Tokens, e.Limit)
}

// BadOption says that an option makes no sense. Field is its name in the OpenAI API.
type BadOption struct{ Field, Reason string }

func (e *BadOption) Error() string { return e.Field + " " + e.Reason }

// Start begins to answer a prompt. Cancelling ctx ends it; otherwise the stream must be read to its end.
func (g *Generator) Start(ctx context.Context, prompt []int32, o Options) (*Stream, error) {
	if len(prompt) == 0 {
		return nil, &BadOption{"prompt", "has no tokens"}
	}
	room := g.MaxContext - len(prompt)
	if room < 1 {
		return nil, &TooLong{len(prompt), g.MaxContext}
	}
	if o.MaxTokens == 0 || o.MaxTokens > room {
		o.MaxTokens = room
	}
	end := o.StopTokens
	if !o.IgnoreEnd {
		end = append(append([]int32(nil), g.End...), o.StopTokens...)
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{generator: g, options: o, prompt: len(prompt), cancel: cancel, chunks: make(chan Chunk, o.Choices)}
	for i := range o.Choices {
		r := engine.Request{
			Prompt: prompt, MaxTokens: o.MaxTokens, MinTokens: min(o.MinTokens, o.MaxTokens), End: end, Sampling: o.Sampling,
			LogProbs: o.LogProbs, PromptLogProbs: o.PromptLogProbs && i == 0, CacheSalt: o.CacheSalt,
		}
		r.Sampling.Seed += int64(i)
		choice, stop := context.WithCancel(ctx)
		events, err := g.Engine.Submit(choice, r)
		if err != nil {
			stop()
			cancel()
			return nil, err
		}
		s.running.Add(1)
		go s.follow(ctx, &answer{choice: i, stop: stop, ends: end, detokenizer: g.Tokenizer.NewDetokenizer(!o.KeepSpecial), matcher: matcher{stops: o.Stop}}, events)
	}
	go func() { // ends when every choice has
		s.running.Wait()
		close(s.chunks)
		cancel()
	}()
	return s, nil
}
