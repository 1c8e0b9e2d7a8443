package completion

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Stream is the answers to one request, in pieces, as they come: those of all choices of all prompts. One goroutine may use it.
type Stream struct {
	generator *Generator
	options   Options
	prompts   []Prompt
	ends      []int32
	inbox     *engine.Inbox
	cancel    context.CancelFunc

	answers []answer
	open    int // answers that go on
	begun   bool
	ended   bool
	usage   chat.Usage
	events  []chat.Event // that Next gave last
}

// errCut says that the engine ended a request that nobody cancelled.
var errCut = errors.New("the request was cut short")

// Ready receives when Next may have something again.
func (s *Stream) Ready() <-chan struct{} { return s.inbox.Ready() }

// Next gives the events that one token made, all of one choice, and nil where there are none until Ready receives. The first of
// all is EventStart, the last is EventEnd, alone. They are valid until the next call. After an error there is nothing more.
func (s *Stream) Next() ([]chat.Event, error) {
	for s.open > 0 {
		e, ok := s.inbox.Next()
		if !ok {
			return nil, nil
		}
		if err := s.advance(e); err != nil {
			s.Close()
			s.open, s.ended = 0, true
			return nil, err
		}
		if len(s.events) > 0 {
			return s.events, nil
		}
	}
	if s.ended {
		return nil, nil
	}
	s.ended = true
	s.events = append(s.events[:0], chat.Event{Kind: chat.EventEnd, Usage: s.usage})
	return s.events, nil
}

// All gives what Next does, to the end or an error. It waits for what is to come.
func (s *Stream) All() iter.Seq2[[]chat.Event, error] {
	return func(yield func([]chat.Event, error) bool) {
		for !s.ended {
			events, err := s.Next()
			switch {
			case err != nil:
				yield(nil, err)
				return
			case events == nil:
				<-s.Ready()
			case !yield(events, nil):
				return
			}
		}
	}
}

// Close ends the answers that still run.
func (s *Stream) Close() {
	s.cancel()
	for i := range s.answers {
		s.answers[i].close()
	}
}

// Usage counts the tokens so far.
func (s *Stream) Usage() chat.Usage { return s.usage }

// advance makes the events of what the engine says of one answer: none where its text is held back.
func (s *Stream) advance(e engine.Event) error {
	s.events = s.events[:0]
	a := &s.answers[e.Request]
	if a.over { // a stop string came, and the engine was ahead
		return nil
	}
	switch e.Finish {
	case engine.FinishError:
		return e.Err
	case engine.FinishCancelled:
		return errCut
	}
	if !a.started && e.Request%s.options.Choices == 0 {
		s.usage.Cached += e.Cached
	}
	s.usage.Drafted += e.Drafts.Computed - a.drafts.Computed
	s.usage.Accepted += e.Drafts.Right - a.drafts.Right
	a.drafts = e.Drafts
	if a.started = true; !s.begun {
		s.begun = true
		s.events = append(s.events, chat.Event{Kind: chat.EventStart, Choice: e.Request, Usage: chat.Usage{Prompt: s.usage.Prompt, Cached: e.Cached}})
	}
	thinking := a.thinking()
	events, finish := a.read(e, s.ends)
	var tokens []chat.Token
	if s.options.Score {
		events = nil
		if finish != "" {
			finish = chat.FinishLength
		}
	} else {
		s.usage.Output++
		if thinking {
			s.usage.Reasoning++
		}
		if e.LogProb != nil {
			tokens = []chat.Token{s.token(*e.LogProb)}
		}
	}
	if len(events) == 0 && tokens != nil {
		events = []chat.Event{{Kind: chat.EventText}}
	}
	if len(events) == 0 && finish == "" {
		return nil
	}
	s.echo(e)
	for i, event := range events {
		event.Choice = e.Request
		if i == 0 {
			event.Tokens = tokens
		}
		s.events = append(s.events, event)
	}
	if finish != "" {
		s.events = append(s.events, chat.Event{Kind: chat.EventFinish, Choice: e.Request, Finish: finish, Match: a.matcher.found})
		a.over = true
		s.open--
		if e.Finish == "" {
			s.inbox.Cancel(e.Request)
		}
	}
	return nil
}

// echo adds the prompt, where answers begin with it and none to it has yet. Its log-probabilities come with the first token of
// its first choice.
func (s *Stream) echo(e engine.Event) {
	prompt := e.Request / s.options.Choices
	first := prompt * s.options.Choices
	if !s.options.Echo || s.answers[first].echoed || s.options.PromptLogProbs && e.Request != first {
		return
	}
	s.answers[first].echoed = true
	t, p := s.generator.Tokenizer, s.prompts[prompt]
	event := chat.Event{Kind: chat.EventPrompt, Choice: first, Text: p.Text}
	if p.Text == "" {
		event.Text = t.Decode(p.Tokens, !s.options.KeepSpecial)
	}
	if s.options.PromptLogProbs {
		event.Tokens = []chat.Token{{Bytes: t.TokenBytes(p.Tokens[0])}}
		for _, l := range e.Prompt {
			event.Tokens = append(event.Tokens, s.token(l))
		}
		for i := range event.Tokens { // of a text only what Encode put before it is not in it
			added := i == 0 && !strings.HasPrefix(p.Text, string(event.Tokens[0].Bytes))
			event.Tokens[i].Hidden = t.IsSpecial(p.Tokens[i]) && (p.Text != "" && added || p.Text == "" && !s.options.KeepSpecial)
		}
	}
	s.events = append(s.events, event)
}

func (s *Stream) token(p sample.TokenLogProb) chat.Token {
	t := s.generator.Tokenizer
	token := chat.Token{Bytes: t.TokenBytes(p.Token), Hidden: !s.options.KeepSpecial && t.IsSpecial(p.Token), LogProb: p.LogProb}
	for _, top := range p.Top {
		token.Top = append(token.Top, chat.TopToken{Bytes: t.TokenBytes(top.Token), LogProb: top.LogProb})
	}
	return token
}
