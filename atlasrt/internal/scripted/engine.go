package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// scripted is an engine that writes what a book says. It is no scheduler: each request has a goroutine of its own, which ends
// with the request.
type scripted struct {
	book  *book
	vocab int32

	running   atomic.Int64
	blocks    atomic.Int64 // that running requests hold
	generated atomic.Uint64
	finished  atomic.Uint64
	cancelled atomic.Uint64
	draining  atomic.Bool
	cache     cache
}

// Blocks of the cache that the engine pretends to have.
const (
	blockTokens = 16
	blocksTotal = 1 << 20
)

// errForm is what the engine fails with where a script writes what its request does not allow.
var errForm = errors.New("the script writes what the request's grammar does not allow")

// follow is the place behind a token in what an answer is held to; false: the token may not come.
func follow(form engine.Grammar, ends []int32, token int32) (engine.Grammar, bool) {
	if form == nil || slices.Contains(ends, token) && form.Done() {
		return form, true
	}
	return form.Next(token)
}

// errBroken is what the engine fails with where a script says so.
var errBroken = errors.New("the script says that the engine fails")

// Submit implements completion.Engine.
func (s *scripted) Submit(ctx context.Context, requests ...engine.Request) (*engine.Inbox, error) {
	if s.draining.Load() {
		return nil, engine.ErrDraining
	}
	answers := make([]answer, len(requests))
	for i, r := range requests {
		if answers[i] = s.book.find(r.Prompt); answers[i].script.Refuse {
			return nil, &engine.QueueFull{Requests: 257, RequestLimit: 256, Tokens: len(r.Prompt), TokenLimit: 1 << 20}
		}
	}
	stops := make([]context.CancelFunc, len(requests))
	inbox := engine.NewInbox(len(requests), func(request int) { stops[request]() })
	for i := range requests {
		var own context.Context
		own, stops[i] = context.WithCancel(ctx)
		held := int64(len(requests[i].Prompt)/blockTokens + 1)
		s.running.Add(1)
		s.blocks.Add(held)
		go func() {
			defer stops[i]()
			last := s.answer(own, &requests[i], answers[i], func(e engine.Event) {
				e.Request = i
				inbox.Put(e)
			})
			s.running.Add(-1) // before the last event goes out: who has read it finds the request gone
			s.blocks.Add(-held)
			last.Request = i
			inbox.Put(last)
		}()
	}
	return inbox, nil
}

// answer writes an answer, and gives its last event.
func (s *scripted) answer(ctx context.Context, r *engine.Request, a answer, put func(engine.Event)) engine.Event {
	cached := s.cache.enter(r.CacheSalt, r.Prompt)
	tokens := s.book.write(s.book.text.Tokenizer, a)
	if len(tokens) == 0 {
		tokens = []int32{s.book.turnEnd()}
	}
	wait, form := a.script.WaitMS, r.Grammar
	for i := 0; ; i++ {
		if !pause(ctx, wait) {
			s.cancelled.Add(1)
			return engine.Event{Token: -1, Finish: engine.FinishCancelled}
		}
		wait = a.script.DelayMS
		if i > 0 && i == a.script.FailAfter {
			return engine.Event{Token: -1, Finish: engine.FinishError, Err: errBroken}
		}
		s.generated.Add(1)
		e := s.token(r, tokens[i%len(tokens)]) // an answer whose end is ignored begins again
		held, ok := follow(form, r.End, e.Token)
		if !ok {
			return engine.Event{Token: -1, Finish: engine.FinishError, Err: errForm}
		}
		form = held
		if i == 0 {
			e.Cached = cached
			if r.PromptLogProbs {
				for _, token := range r.Prompt[1:] {
					e.Prompt = append(e.Prompt, s.logProb(token, r.LogProbs))
				}
			}
		}
		switch {
		case slices.Contains(r.End, e.Token) && i+1 > r.MinTokens:
			e.Finish = engine.FinishStop
		case i+1 == r.MaxTokens || a.script.Finish == "length" && i+1 == len(tokens):
			e.Finish = engine.FinishLength
		}
		if e.Finish != "" {
			s.finished.Add(1)
			return e
		}
		put(e)
	}
}

func (s *scripted) token(r *engine.Request, token int32) engine.Event {
	e := engine.Event{Token: token}
	if r.LogProbs >= 0 {
		l := s.logProb(token, r.LogProbs)
		e.LogProb = &l
	}
	return e
}

// logProb makes log-probabilities up.
func (s *scripted) logProb(token int32, top int) sample.TokenLogProb {
	l := sample.TokenLogProb{Token: token, LogProb: -0.25}
	for i := range min(int32(top), s.vocab) {
		l.Top = append(l.Top, sample.Choice{Token: (token + i) % s.vocab, LogProb: -0.25 - float32(i)})
	}
	return l
}

// pause waits, and tells whether the request goes on.
func pause(ctx context.Context, milliseconds int) bool {
	if milliseconds == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
		return true
	}
}

// Stats implements server.Engine.
func (s *scripted) Stats() engine.Stats {
	used := int(s.blocks.Load())
	return engine.Stats{
		Running: int(s.running.Load()), BlocksUsed: used, BlocksFree: blocksTotal - used, BlocksTotal: blocksTotal, BlockTokens: blockTokens, Sharing: true,
		GeneratedTokens: s.generated.Load(), Finished: s.finished.Load(), Cancelled: s.cancelled.Load(),
	}
}

// Heartbeat implements server.Engine.
func (s *scripted) Heartbeat() time.Time { return time.Now() }

// Err implements server.Engine.
func (s *scripted) Err() error { return nil }

// Drain implements server.Engine.
func (s *scripted) Drain(ctx context.Context) error {
	s.draining.Store(true)
	for s.running.Load() > 0 {
		if !pause(ctx, 1) {
			return ctx.Err()
		}
	}
	return nil
}

// cache remembers prompts, as a cache of their blocks would.
type cache struct {
	mutex   sync.Mutex
	prompts []cached // the last ones
}

type cached struct {
	salt   string
	tokens []int32
}

// mostPrompts bounds what a cache remembers.
const mostPrompts = 64

// enter adds a prompt, and tells how many of its tokens the cache held: whole blocks, and never the last token.
func (c *cache) enter(salt string, tokens []int32) (held int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, p := range c.prompts {
		if p.salt != salt {
			continue
		}
		n := 0
		for n < len(tokens)-1 && n < len(p.tokens) && tokens[n] == p.tokens[n] {
			n++
		}
		held = max(held, n/blockTokens*blockTokens)
	}
	if c.prompts = append(c.prompts, cached{salt, tokens}); len(c.prompts) > mostPrompts {
		c.prompts = slices.Delete(c.prompts, 0, 1)
	}
	return held
}
