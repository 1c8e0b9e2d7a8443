package server

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/halfclose"
	"github.com/atlas-inference/atlas/atlasrt/internal/metrics"
)

// answer writes in one dialect: as a stream, or as a whole.
type answer interface {
	AppendChunk(b []byte, choice int, c completion.Chunk) []byte
	AppendEnd(b []byte, u completion.Usage) []byte
	Add(choice int, c completion.Chunk)
	Body(u completion.Usage) []byte
}

// exchange is a request that was understood, and its answer on the way.
type exchange struct {
	api.Generation
	prompts [][]int32
	input   string // the field that prompts come from
	answer  answer
	before  func(j *job, prompt int) // called once per prompt, before its first chunk is written; may be nil
	score   bool                     // what is generated is not shown
	arrived time.Time
}

// serve answers a request to its end.
func (s *Server) serve(c *gin.Context, x *exchange) {
	s.metrics.Admitted(x.Options.Choices, min(x.Options.MaxTokens, s.config.Generator.MaxContext))
	e := entryOf(c)
	e.model = x.Model
	for _, p := range x.prompts {
		e.usage.Prompt += len(p)
	}
	j, err := s.start(c.Request.Context(), x.prompts, x.Options)
	if err != nil {
		if p := problem(err); p.Limit == api.LimitContext {
			p.Param, err = x.input, p
		}
		if full, ok := errors.AsType[*engine.QueueFull](err); ok && x.neverFits(full) {
			err = api.TooMuch(api.LimitQueue, x.input, "This request asks for %d answers to %d tokens of %s, but only %d answers and %d tokens may wait here at a time; ask for fewer.",
				len(x.prompts)*x.Options.Choices, e.usage.Prompt, x.input, full.RequestLimit, full.TokenLimit)
		}
		s.end(c, err)
		return
	}
	defer j.close()
	clock := newClock(s.metrics, x, len(x.prompts)*x.Options.Choices)
	if x.Stream {
		err = s.stream(c, x, j, clock)
	} else {
		err = s.whole(c, x, j, clock)
	}
	e.usage, e.first, e.finish = x.usage(j), clock.first, reasons(clock.ended)
	if err != nil {
		clock.abort()
		s.end(c, err)
		return
	}
	s.metrics.Finished(time.Since(x.arrived), e.usage.Prompt, e.usage.Cached, e.usage.Completion)
}

// neverFits tells whether a queue that was full is too small for this request even when nobody else waits: to try again is no use.
func (x *exchange) neverFits(full *engine.QueueFull) bool {
	tokens := 0
	for _, p := range x.prompts {
		tokens += len(p)
	}
	return len(x.prompts)*x.Options.Choices > full.RequestLimit || tokens > full.TokenLimit
}

func (x *exchange) usage(j *job) completion.Usage {
	u := j.usage()
	if x.score {
		u.Completion = 0
	}
	return u
}

// shown is what of a chunk the client sees.
func (x *exchange) shown(c completion.Chunk) completion.Chunk {
	if x.score {
		c.Text, c.Tokens = "", nil
		if c.Finish != "" {
			c.Finish = completion.FinishLength
		}
	}
	return c
}

// stream writes events as chunks come.
func (s *Server) stream(c *gin.Context, x *exchange, j *job, clock *clock) error {
	if err := s.startEvents(c); err != nil {
		return s.lost(j, err)
	}
	var buffer []byte
	begun := make([]bool, len(x.prompts))
	take := func(p piece) error {
		clock.tick(j.index(p), p.Finish)
		if x.before != nil && !begun[p.prompt] {
			begun[p.prompt] = true
			x.before(j, p.prompt)
		}
		buffer = x.answer.AppendChunk(buffer[:0], j.index(p), x.shown(p.Chunk))
		if len(buffer) == 0 {
			return nil
		}
		return s.lost(j, s.send(c, buffer))
	}
	idle := func() error { return s.lost(j, s.send(c, api.AppendPing(buffer[:0]))) }
	if err := j.follow(s.limits.PingTime, take, idle); err != nil {
		return err
	}
	return s.lost(j, s.send(c, x.answer.AppendEnd(buffer[:0], x.usage(j))))
}

// lost cancels a request whose client cannot be written to, and says why.
func (s *Server) lost(j *job, err error) error {
	if err == nil {
		return nil
	}
	j.close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errStalled
	}
	return fmt.Errorf("%w: %w", halfclose.ErrGone, err)
}

// whole writes the answer once it is complete.
func (s *Server) whole(c *gin.Context, x *exchange, j *job, clock *clock) error {
	take := func(p piece) error {
		clock.tick(j.index(p), p.Finish)
		x.answer.Add(j.index(p), x.shown(p.Chunk))
		return nil
	}
	if err := j.follow(s.limits.PingTime, take, func() error { return nil }); err != nil {
		return err
	}
	if x.before != nil {
		for prompt := range x.prompts {
			x.before(j, prompt)
		}
	}
	s.write(c, 200, jsonType, x.answer.Body(x.usage(j)))
	return nil
}

// clock measures the tokens of a request.
type clock struct {
	metrics *metrics.Metrics
	arrived time.Time
	first   time.Time           // when the first piece came
	last    []time.Time         // by choice: its last piece
	ended   []completion.Finish // by choice; empty: it goes on
}

func newClock(m *metrics.Metrics, x *exchange, choices int) *clock {
	return &clock{metrics: m, arrived: x.arrived, last: make([]time.Time, choices), ended: make([]completion.Finish, choices)}
}

// tick counts a piece of a choice.
func (k *clock) tick(choice int, finish completion.Finish) {
	now := time.Now()
	if k.first.IsZero() {
		k.first = now
		k.metrics.FirstToken(now.Sub(k.arrived))
	}
	if !k.last[choice].IsZero() {
		k.metrics.NextToken(now.Sub(k.last[choice]))
	}
	k.last[choice] = now
	if finish != "" {
		k.ended[choice] = finish
		k.metrics.Choice(string(finish))
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
