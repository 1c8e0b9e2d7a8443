package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/halfclose"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
)

// serve answers a request to its end.
func (s *Server) serve(c *gin.Context, x *exchange) {
	e := entryOf(c)
	e.model, e.usage.Prompt = x.name, x.tokens()
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), s.limits.RequestTime, errDeadline)
	defer cancel()
	stream, err := s.start(ctx, x)
	if err != nil {
		s.end(c, err)
		return
	}
	defer stream.Close()
	answer := x.dialect.Answer(x.request, api.Head{ID: newID(""), Created: time.Now().Unix(), Model: x.name})
	e.answer = answer
	clock := newClock(s.metrics, x)
	if x.request.Stream {
		err = s.stream(ctx, c, answer, stream, clock)
	} else {
		err = s.whole(ctx, c, answer, stream, clock)
	}
	e.usage, e.first, e.finish = stream.Usage(), clock.first, reasons(clock.ended)
	if err != nil {
		clock.abort()
		s.end(c, err)
		return
	}
	s.metrics.Finished(time.Since(x.arrived), e.usage.Prompt, e.usage.Cached, e.usage.Output)
}

// start hands a request to the engine.
func (s *Server) start(ctx context.Context, x *exchange) (*completion.Stream, error) {
	g := x.model.Generator
	s.metrics.Admitted(x.request.Options.Choices, min(x.request.Options.MaxTokens, g.MaxContext))
	stream, err := g.Start(ctx, x.prompts, x.request.Options)
	if full, ok := errors.AsType[*engine.QueueFull](err); ok && x.neverFits(full) {
		err = api.TooMuch(api.LimitQueue, x.inputField(), "This request asks for %d answers to %d tokens of %s, but only %d answers and %d tokens may wait here at a time; ask for fewer.",
			x.request.Choices(), x.tokens(), x.inputField(), full.RequestLimit, full.TokenLimit)
	}
	return stream, err
}

// tokens is how many tokens the prompts have.
func (x *exchange) tokens() (n int) {
	for _, p := range x.prompts {
		n += len(p.Tokens)
	}
	return n
}

// neverFits tells whether a queue that was full is too small for this request even when nobody else waits: to try again is no use.
func (x *exchange) neverFits(full *engine.QueueFull) bool {
	return x.request.Choices() > full.RequestLimit || x.tokens()*x.request.Options.Choices > full.TokenLimit
}

// stream writes events as tokens come.
func (s *Server) stream(ctx context.Context, c *gin.Context, to api.Answer, from *completion.Stream, clock *clock) error {
	if err := s.startEvents(c); err != nil {
		return lost(err)
	}
	buffer := to.Begin(nil)
	if len(buffer) > 0 {
		if err := s.send(c, buffer); err != nil {
			return lost(err)
		}
	}
	return s.follow(ctx, from, func(events []chat.Event) error {
		clock.tick(events)
		buffer = to.Append(buffer[:0], events)
		return lost(s.send(c, buffer))
	}, func() error { return lost(s.send(c, to.Ping(buffer[:0]))) })
}

// lost says why a client cannot be written to.
func lost(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errStalled
	}
	return fmt.Errorf("%w: %w", halfclose.ErrGone, err)
}

// whole writes the answer once it is complete.
func (s *Server) whole(ctx context.Context, c *gin.Context, to api.Answer, from *completion.Stream, clock *clock) error {
	err := s.follow(ctx, from, func(events []chat.Event) error {
		clock.tick(events)
		to.Add(events)
		return nil
	}, func() error { return nil })
	if err != nil {
		return err
	}
	s.write(c, 200, jsonType, to.Body())
	return nil
}

// follow hands on what each token makes until the request is answered, and calls idle where nothing comes for a while, or where
// the client must be written to. An error of theirs ends it; else the error says why the answer cannot be completed.
func (s *Server) follow(ctx context.Context, from *completion.Stream, take func([]chat.Event) error, idle func() error) error {
	probes := halfclose.Probes(ctx) // asks for an event without a meaning
	timer := time.NewTimer(s.limits.PingTime)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-from.Ready():
			var events []chat.Event
			for events, err = from.Next(); events != nil; events, err = from.Next() {
				if err := take(events); err != nil {
					return err
				}
				if events[0].Kind == chat.EventEnd {
					return nil
				}
			}
		case <-timer.C:
			if err := idle(); err != nil {
				return err
			}
		case <-probes:
			if err := idle(); err != nil {
				return err
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		timer.Reset(s.limits.PingTime)
	}
}

// clock measures the tokens of a request.
type clock struct {
	metrics *metrics.Metrics
	arrived time.Time
	first   time.Time     // when the first token showed
	last    []time.Time   // by choice: when its last one did
	ended   []chat.Finish // by choice; empty: it goes on
}

func newClock(m *metrics.Metrics, x *exchange) *clock {
	choices := x.request.Choices()
	return &clock{metrics: m, arrived: x.arrived, last: make([]time.Time, choices), ended: make([]chat.Finish, choices)}
}

// tick counts what one token made.
func (k *clock) tick(events []chat.Event) {
	event := &events[len(events)-1]
	if event.Kind == chat.EventEnd {
		return
	}
	now, choice := time.Now(), event.Choice
	if k.first.IsZero() {
		k.first = now
		k.metrics.FirstToken(now.Sub(k.arrived))
	}
	if !k.last[choice].IsZero() {
		k.metrics.NextToken(now.Sub(k.last[choice]))
	}
	k.last[choice] = now
	if event.Kind == chat.EventFinish {
		k.ended[choice] = event.Finish
		k.metrics.Choice(string(event.Finish))
	}
}

// abort counts the choices that will not end.
func (k *clock) abort() {
	for _, ended := range k.ended {
		if ended == "" {
			k.metrics.Choice(metrics.Abort)
		}
	}
}
