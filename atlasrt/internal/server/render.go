package server

import (
	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
)

// renders shows the prompts of requests of a dialect.
func renders(d api.Dialect) func(*Server, *gin.Context) {
	return func(s *Server, c *gin.Context) { s.render(c, d) }
}

// render shows the prompts that the model would get of a request, which is not answered.
func (s *Server) render(c *gin.Context, d api.Dialect) {
	if x := s.exchange(c, d); x != nil {
		var notes []string
		for _, note := range x.notes {
			notes = append(notes, note.String())
		}
		s.write(c, 200, jsonType, openai.RenderBody(x.shown(), notes, x.model.Generator.MaxContext))
	}
}

// applyTemplate answers POST /apply-template: the text of a prompt alone.
func (s *Server) applyTemplate(c *gin.Context) {
	if x := s.exchange(c, openai.Chat{}); x != nil {
		s.write(c, 200, jsonType, openai.TemplateBody(x.shown()[0].Text))
	}
}

// shown are the prompts with their texts: those that came as tokens have none of their own.
func (x *exchange) shown() []completion.Prompt {
	g := x.model.Generator
	for i := range x.prompts {
		p := &x.prompts[i]
		p.Thinking = g.Within(p, &x.request.Options)
		if p.Text == "" {
			p.Text = g.Tokenizer.Decode(p.Tokens, false)
		}
	}
	return x.prompts
}
