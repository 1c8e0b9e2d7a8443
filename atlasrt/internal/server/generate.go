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
	s.serve(c, &exchange{Generation: r.Generation, prompts: [][]int32{prompt}, input: "messages", arrived: arrived,
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
	return api.Head{ID: newID(prefix), Created: time.Now().Unix(), Model: g.Model, Choices: prompts * g.Options.Choices, IncludeUsage: g.IncludeUsage}
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
	var prompts [][]int32
	if err == nil {
		prompts, err = s.prompts(b.ctx, r)
	}
	b.leave()
	if err != nil {
		s.end(c, s.beyondContext(err, "prompt"))
		return
	}
	a := api.NewTextAnswer(head("cmpl-", &r.Generation, len(r.Prompts)))
	x := &exchange{Generation: r.Generation, input: "prompt", prompts: prompts, answer: a, score: r.Score, arrived: arrived}
	if r.Echo {
		x.before = func(j *job, prompt int) {
			e := s.echo(r, x.prompts[prompt], r.Prompts[prompt], j.streams[prompt])
			for choice := range j.choices {
				a.Echo(prompt*j.choices+choice, e)
			}
		}
	}
	s.serve(c, x)
}

// mostCounted is how many tokens of a prompt are made at most. Up to twice the context, the error that it is too long can
// say how many tokens it has.
func (s *Server) mostCounted() int { return 2 * s.config.Generator.MaxContext }

// prompts are the tokens of each prompt. The first that has more than mostCounted ends the work.
func (s *Server) prompts(ctx context.Context, r *api.TextRequest) ([][]int32, error) {
	prompts := make([][]int32, 0, len(r.Prompts))
	for _, p := range r.Prompts {
		tokens := p.Tokens
		if tokens == nil {
			var err error
			if tokens, err = s.encode(ctx, p.Text, r.Special, s.mostCounted()); err != nil {
				return nil, err
			}
		}
		prompts = append(prompts, tokens)
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

// encode gives the tokens of a text that is no conversation, at most limit; more are a *tokenizer.TooLong. Its control
// tokens count: whoever writes whole prompts means them. special begins it as the model expects, unless it does so itself.
func (s *Server) encode(ctx context.Context, text string, special bool, limit int) ([]int32, error) {
	t := s.config.Generator.Tokenizer
	tokens, err := t.EncodeWithin(ctx, text, true, limit)
	if err != nil {
		return nil, err
	}
	if before := t.Before(); special && len(before) > 0 && (len(tokens) == 0 || tokens[0] != before[0]) {
		tokens = append(before, tokens...)
	}
	return tokens, nil
}

// echo is a prompt as a part of its answer.
func (s *Server) echo(r *api.TextRequest, tokens []int32, p api.Prompt, stream *completion.Stream) api.Echo {
	t := s.config.Generator.Tokenizer
	e := api.Echo{Text: p.Text}
	if p.Tokens != nil {
		e.Text = t.Decode(tokens, !r.Options.KeepSpecial)
	}
	if !r.Options.PromptLogProbs {
		return e
	}
	e.Tokens = append([]completion.Token{{Bytes: t.TokenBytes(tokens[0])}}, stream.PromptTokens()...)
	for i := range e.Tokens { // of a text only what encode put before it is not in it
		added := i == 0 && !strings.HasPrefix(p.Text, string(e.Tokens[0].Bytes))
		e.Tokens[i].Hidden = t.IsSpecial(tokens[i]) && (p.Tokens == nil && added || p.Tokens != nil && !r.Options.KeepSpecial)
	}
	return e
}
