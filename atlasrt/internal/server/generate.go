package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// exchange is a request for answers on its way.
type exchange struct {
	dialect api.Dialect
	arrived time.Time
	request *api.Request
	model   *Model
	name    string // of the model, as the client wrote it or, where it wrote none, the model's own
	prompts []completion.Prompt
	counts  bool           // the prompts are only counted
	notes   []grammar.Note // on what the answer is held to
}

// generates answers requests of a dialect.
func generates(d api.Dialect) func(*Server, *gin.Context) {
	return func(s *Server, c *gin.Context) {
		entryOf(c).record = s.config.Dump.begin()
		if x := s.exchange(c, d); x != nil {
			s.serve(c, x)
		}
	}
}

// exchange takes a request of a dialect in: it is decoded, its model is found, its options are held against the model, and its
// prompts are made. Where that fails the client is told so, and there is none.
func (s *Server) exchange(c *gin.Context, d api.Dialect) *exchange {
	return s.take(c, &exchange{dialect: d})
}

// counted is exchange for a request whose prompts are only counted: they may be longer than the context.
func (s *Server) counted(c *gin.Context, d api.Dialect) *exchange {
	return s.take(c, &exchange{dialect: d, counts: true})
}

func (s *Server) take(c *gin.Context, x *exchange) *exchange {
	b, err := s.body(c)
	if err != nil {
		s.end(c, err)
		return nil
	}
	defer b.leave()
	entryOf(c).record.request(b.text)
	x.arrived = time.Now()
	x.request, err = x.dialect.Decode(b.text, s.request)
	if err == nil {
		s.metrics.UnknownFields(x.request.Unknown)
		err = s.prepare(b.ctx, x)
	}
	b.leave()
	entryOf(c).notes = len(x.notes)
	if err != nil {
		s.end(c, err)
		return nil
	}
	return x
}

// prepare completes a request by what its model knows, and compiles what the answer is held to.
func (s *Server) prepare(ctx context.Context, x *exchange) (err error) {
	if x.model, err = s.model(x.request.Model); err != nil {
		return err
	}
	x.name = cmp.Or(x.request.Model, x.model.Name)
	if r := x.request.Chat; r != nil {
		o := &x.request.Options
		o.Chat, o.Tools = true, r.Tools
		o.Thinking = x.model.Generator.Resolve(r.Thinking, o.MaxTokens)
	}
	if err := x.request.Check(x.model.Generator); err != nil {
		return err
	}
	if sampling := &x.request.Options.Sampling; sampling.Seed == nil {
		sampling.Seed = new(randomSeed())
	}
	limit := x.model.mostCounted()
	if x.counts {
		limit = s.limits.CountTokens
	}
	x.prompts, err = x.model.prompts(ctx, x.request, x.inputField(), limit)
	if long, ok := errors.AsType[*tokenizer.TooLong](err); ok {
		if x.counts {
			return tooMany(x.inputField(), long)
		}
		return tooLong(x.dialect, api.Count{Tokens: long.AtLeast, AtLeast: true, Limit: x.model.Generator.MaxContext})
	}
	if err != nil {
		return err
	}
	x.notes, err = x.model.Generator.Hold(ctx, x.prompts, &x.request.Options)
	return err
}

// inputField is the field that prompts are made from.
func (x *exchange) inputField() string { return x.dialect.Field(option.Prompt) }

func randomSeed() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.LittleEndian.Uint64(b[:]))
}
