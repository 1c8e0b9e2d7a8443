package server

import (
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// tokenize answers POST /tokenize.
func (s *Server) tokenize(c *gin.Context) {
	b, err := s.body(c)
	if err != nil {
		s.end(c, err)
		return
	}
	defer b.leave()
	r, err := openai.DecodeTokenize(b.text, s.request)
	var m *Model
	if err == nil {
		m, err = s.model(r.Model)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.metrics.UnknownFields(r.Unknown)
	var tokens []int32
	field := "prompt"
	if r.Chat == nil {
		tokens, err = m.Generator.Encode(b.ctx, r.Text, r.Special, s.limits.CountTokens)
	} else {
		field = "messages"
		var p completion.Prompt
		p, err = m.render(b.ctx, r.Chat, field, s.limits.CountTokens)
		tokens = p.Tokens
	}
	if e, ok := errors.AsType[*tokenizer.TooLong](err); ok {
		err = tooMany(field, e)
	}
	if e, ok := errors.AsType[*tokenizer.Intractable](err); ok {
		err = intractable(field, e)
	}
	if err != nil {
		s.end(c, err)
		return
	}
	g := m.Generator
	answer := openai.TokenizeBody(r, tokens, g.MaxContext, g.Tokenizer.TokenBytes)
	b.leave()
	s.write(c, 200, jsonType, answer)
}

// detokenize answers POST /detokenize.
func (s *Server) detokenize(c *gin.Context) {
	b, err := s.body(c)
	if err != nil {
		s.end(c, err)
		return
	}
	defer b.leave()
	r, err := openai.DecodeDetokenize(b.text)
	var m *Model
	if err == nil {
		m, err = s.model(r.Model)
	}
	if err == nil {
		err = unknownToken(m.Generator.Tokenizer, r.Tokens)
	}
	if err == nil && len(r.Tokens) > s.limits.CountTokens {
		err = api.TooMuch(api.LimitTokens, "tokens", "tokens has %d entries, at most %d are allowed.", len(r.Tokens), s.limits.CountTokens)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.metrics.UnknownFields(r.Unknown)
	answer := openai.DetokenizeBody(m.Generator.Tokenizer.Decode(r.Tokens, false))
	b.leave()
	s.write(c, 200, jsonType, answer)
}

// unknownToken refuses tokens that a tokenizer has no text for.
func unknownToken(t *tokenizer.Tokenizer, tokens []int32) error {
	for _, token := range tokens {
		if token < 0 || int(token) >= t.VocabSize() {
			return api.Invalid("tokens", "tokens holds token %d, the vocabulary has %d.", token, t.VocabSize())
		}
	}
	return nil
}
