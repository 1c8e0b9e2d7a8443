package server

import (
	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// tokenize answers POST /tokenize.
func (s *Server) tokenize(c *gin.Context) {
	body, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	r, err := api.DecodeTokenize(body, s.request)
	if err == nil && !s.knows(r.Model) {
		err = api.UnknownModel(r.Model)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.metrics.UnknownFields(r.Unknown)
	var tokens []int32
	if r.Chat == nil {
		tokens = s.encode(r.Text, r.Special)
	} else if tokens, err = s.render(r.Chat); err != nil {
		s.fail(c, err)
		return
	}
	g := s.config.Generator
	s.write(c, 200, jsonType, api.TokenizeBody(r, tokens, g.MaxContext, g.Tokenizer.TokenBytes))
}

// detokenize answers POST /detokenize.
func (s *Server) detokenize(c *gin.Context) {
	body, err := s.body(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	t := s.config.Generator.Tokenizer
	r, err := api.DecodeDetokenize(body, int32(t.VocabSize()))
	if err == nil && !s.knows(r.Model) {
		err = api.UnknownModel(r.Model)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.metrics.UnknownFields(r.Unknown)
	s.write(c, 200, jsonType, api.DetokenizeBody(t.Decode(r.Tokens, false)))
}
