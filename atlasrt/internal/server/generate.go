package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// chat answers POST /v1/chat/completions.
func (s *Server) chat(c *gin.Context) {
	b, err := s.body(c)
	if err != nil {
		s.end(c, err)
		return
	}
	defer b.leave()
	arrived := time.Now()
	r, err := api.DecodeChat(b.text, s.request, s.config.Defaults)
	if err == nil {
		err = s.prepare(&r.Generation)
	}
	var prompt []int32
	if err == nil {
		prompt, err = s.render(b.ctx, &r.Chat, s.mostCounted())
	}
	b.leave()
	if err != nil {
		s.end(c, s.beyondContext(err, "messages"))
		return
	}
	s.serve(c, &exchange{Generation: r.Generation, prompts: []completion.Prompt{{Tokens: prompt}}, input: "messages", arrived: arrived,
		answer: api.NewChatAnswer(head("chatcmpl-", &r.Generation, 1))})
}

// prepare completes what both kinds of request share.
func (s *Server) prepare(g *api.Generation) error {
	s.metrics.UnknownFields(g.Unknown)
	if !s.knows(g.Model) {
		return api.UnknownModel(g.Model)
	}
	g.Model = cmp.Or(g.Model, s.config.ModelName) // as answers show it
	if !g.Seeded {
		g.Options.Sampling.Seed = randomSeed()
	}
	return nil
}

func randomSeed() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.LittleEndian.Uint64(b[:]))
}

func head(prefix string, g *api.Generation, prompts int) api.Head {
	return api.Head{ID: newID(prefix), Created: time.Now().Unix(), Model: g.Model, Prompts: prompts, Choices: g.Options.Choices, IncludeUsage: g.IncludeUsage}
}

// maxTemplateError bounds what is shown of a template's error.
const maxTemplateError = 500

// render makes a conversation into a prompt of at most limit tokens; more are a *tokenizer.TooLong.
func (s *Server) render(ctx context.Context, r *chat.Request, limit int) ([]int32, error) {
	if s.config.Template == nil {
		return nil, api.Unsupported("messages", "This model has no chat template; use /v1/completions.")
	}
	prompt, err := s.config.Template.Prompt(ctx, r, time.Now(), limit)
	if _, long := errors.AsType[*tokenizer.TooLong](err); long {
		return nil, err
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		text, param := err.Error(), "messages"
		if e, ok := errors.AsType[*chat.Refusal](err); ok {
			param = fmt.Sprintf("messages[%d]", e.Message)
		}
		return nil, api.Invalid(param, "The conversation does not fit the model: %s", strings.ToValidUTF8(text[:min(len(text), maxTemplateError)], ""))
	}
	return prompt, nil
}

// text answers POST /v1/completions.
func (s *Server) text(c *gin.Context) {
	b, err := s.body(c)
	if err != nil {
		s.end(c, err)
		return
	}
	defer b.leave()
	arrived := time.Now()
	r, err := api.DecodeText(b.text, s.request, s.config.Defaults)
	if err == nil {
		err = s.prepare(&r.Generation)
	}
	var prompts []completion.Prompt
	if err == nil {
		prompts, err = s.prompts(b.ctx, r)
	}
	b.leave()
	if err != nil {
		s.end(c, s.beyondContext(err, "prompt"))
		return
	}
	s.serve(c, &exchange{Generation: r.Generation, prompts: prompts, input: "prompt", arrived: arrived,
		answer: api.NewTextAnswer(head("cmpl-", &r.Generation, len(prompts)))})
}

// mostCounted is how many tokens of a prompt are made at most. Up to twice the context, the error that it is too long can
// say how many tokens it has.
func (s *Server) mostCounted() int { return 2 * s.config.Generator.MaxContext }

// prompts are the tokens of each prompt. The first that has more than mostCounted ends the work.
func (s *Server) prompts(ctx context.Context, r *api.TextRequest) ([]completion.Prompt, error) {
	prompts := make([]completion.Prompt, len(r.Prompts))
	for i, p := range r.Prompts {
		tokens := p.Tokens
		if tokens == nil {
			var err error
			if tokens, err = s.config.Generator.Encode(ctx, p.Text, r.Special, s.mostCounted()); err != nil {
				return nil, err
			}
		}
		prompts[i] = completion.Prompt{Tokens: tokens, Text: p.Text}
	}
	return prompts, nil
}

// beyondContext blames a field for more tokens than were counted; other errors stay as they are.
func (s *Server) beyondContext(err error, param string) error {
	e, ok := errors.AsType[*tokenizer.TooLong](err)
	if !ok {
		return err
	}
	beyond := api.BeyondContext(s.config.Generator.MaxContext, e.AtLeast)
	beyond.Param = param
	return beyond
}
