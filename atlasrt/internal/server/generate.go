package server

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
)

// chat answers POST /v1/chat/completions.
func (s *Server) chat(c *gin.Context) {
	body, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	arrived := time.Now()
	r, err := api.DecodeChat(body, s.request, s.config.Defaults)
	if err == nil {
		err = s.prepare(&r.Generation)
	}
	var prompt []int32
	if err == nil {
		prompt, err = s.render(&r.Chat)
	}
	if err != nil {
		s.fail(c, err)
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

// render makes a conversation into a prompt.
func (s *Server) render(r *chat.Request) ([]int32, error) {
	if s.config.Template == nil {
		return nil, api.Unsupported("messages", "This model has no chat template; use /v1/completions.")
	}
	prompt, err := s.config.Template.Prompt(r, time.Now())
	if err != nil {
		text := err.Error()
		return nil, api.Invalid("messages", "The conversation does not fit the model: %s", text[:min(len(text), maxTemplateError)])
	}
	return prompt, nil
}

// text answers POST /v1/completions.
func (s *Server) text(c *gin.Context) {
	body, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	arrived := time.Now()
	r, err := api.DecodeText(body, s.request, s.config.Defaults)
	if err == nil {
		err = s.prepare(&r.Generation)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	a := api.NewTextAnswer(head("cmpl-", &r.Generation, len(r.Prompts)))
	x := &exchange{Generation: r.Generation, input: "prompt", answer: a, score: r.Score, arrived: arrived}
	for _, p := range r.Prompts {
		tokens := p.Tokens
		if tokens == nil {
			tokens = s.encode(p.Text, r.Special)
		}
		x.prompts = append(x.prompts, tokens)
	}
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

// encode gives the tokens of a text that is no conversation. Its control tokens count: whoever writes whole prompts means
// them. special begins it as the model expects, unless it does so itself.
func (s *Server) encode(text string, special bool) []int32 {
	t := s.config.Generator.Tokenizer
	tokens := t.Encode(text, true)
	if bos, _ := t.BOS(); special && t.AddBOS() && (len(tokens) == 0 || tokens[0] != bos) {
		tokens = append([]int32{bos}, tokens...)
	}
	return tokens
}

// echo is a prompt as a part of its answer.
func (s *Server) echo(r *api.TextRequest, tokens []int32, p api.Prompt, stream *completion.Stream) api.Echo {
	t := s.config.Generator.Tokenizer
	e := api.Echo{Text: p.Text}
	if p.Tokens != nil {
		e.Text = t.Decode(tokens, !r.Options.KeepSpecial)
	}
	if r.Options.PromptLogProbs {
		e.Tokens = append([]completion.Token{{Bytes: t.TokenBytes(tokens[0])}}, stream.PromptTokens()...)
	}
	return e
}
