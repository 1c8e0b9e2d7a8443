package server

import (
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
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
	r, err := api.DecodeTokenize(b.text, s.request)
	if err == nil && !s.knows(r.Model) {
		err = api.UnknownModel(r.Model)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.metrics.UnknownFields(r.Unknown)
	var tokens []int32
	field := "prompt"
	if r.Chat == nil {
		tokens, err = s.config.Generator.Encode(b.ctx, r.Text, r.Special, s.limits.CountTokens)
	} else {
		field = "messages"
		tokens, err = s.render(b.ctx, r.Chat, s.limits.CountTokens)
	}
	if e, ok := errors.AsType[*tokenizer.TooLong](err); ok {
		err = api.TooMuch(api.LimitTokens, field, "%s has at least %d tokens; this route counts up to %d.", field, e.AtLeast, e.Limit)
	}
	if err != nil {
		s.end(c, err)
		return
	}
	g := s.config.Generator
	answer := api.TokenizeBody(r, tokens, g.MaxContext, g.Tokenizer.TokenBytes)
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
	t := s.config.Generator.Tokenizer
	r, err := api.DecodeDetokenize(b.text, int32(t.VocabSize()))
	if err == nil && !s.knows(r.Model) {
		err = api.UnknownModel(r.Model)
	}
	if err == nil && len(r.Tokens) > s.limits.CountTokens {
		err = api.TooMuch(api.LimitTokens, "tokens", "tokens has %d entries, at most %d are allowed.", len(r.Tokens), s.limits.CountTokens)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.metrics.UnknownFields(r.Unknown)
	answer := api.DetokenizeBody(t.Decode(r.Tokens, false))
	b.leave()
	s.write(c, 200, jsonType, answer)
}
