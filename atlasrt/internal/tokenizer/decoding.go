package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// decode reads the decoder of a tokenizer.json. The note says what was assumed where there is none.
func (p *pipeline) decode(c *component) (note string, err error) {
	if c == nil || c.Type == "" {
		return p.assumeDecoder()
	}
	parts := c.Decoders
	if c.Type != "Sequence" {
		parts = []component{*c}
	}
	fused := false
	for i, c := range parts {
		d := &p.decoder
		switch {
		case c.Type == "ByteLevel" && len(d.rewrite) == 0 && !d.byteFallback && !d.byteLevel:
			d.byteLevel = true
		case c.Type == "Fuse":
			fused = true
		case c.Type == "ByteFallback" && !fused && !d.byteLevel:
			d.byteFallback = true
		case c.Type == "Replace" && !fused && !d.byteFallback && !d.byteLevel:
			m, _, err := p.matcher(c.Pattern)
			if err != nil {
				return "", fmt.Errorf("component Replace: %w", err)
			}
			d.rewrite = append(d.rewrite, func(s string) string {
				out, _ := replaceNormalizer{m, c.Content}.normalize(s, nil)
				return out
			})
		case c.Type == "Metaspace" && i == 0 && c.Replacement != "":
			d.rewrite = append(d.rewrite, func(s string) string { return strings.ReplaceAll(s, c.Replacement, " ") })
			if c.PrependScheme != "never" && (c.PrependScheme != "" || c.AddPrefix == nil || *c.AddPrefix) {
				d.firstRewrite = func(s string) string { return strings.ReplaceAll(s, c.Replacement, "") }
			}
		case c.Type == "Strip" && fused && i == len(parts)-1 && !d.byteLevel:
			if len(c.Content) != 1 || c.Stop != 0 || c.Start < 0 {
				return "", fmt.Errorf("component Strip: content %.40q, start %d, stop %d: only one ASCII character at the start is supported", c.Content, c.Start, c.Stop)
			}
			d.stripContent, d.stripStart = c.Content[0], c.Start
		default:
			return "", fmt.Errorf("type %q is not supported as part %d of %d", c.Type, i+1, len(parts))
		}
	}
	return "", nil
}

// assumeDecoder undoes what the pre-tokenizer does. Without a decoder transformers would join tokens with blanks.
func (p *pipeline) assumeDecoder() (note string, err error) {
	if p.byteLevel {
		p.decoder.byteLevel = true
		return "there is no decoder: ByteLevel is assumed, as the pre-tokenizer is", nil
	}
	for _, s := range p.stages {
		if m, ok := s.(metaspaceStage); ok {
			return "there is no decoder: Metaspace is assumed, as the pre-tokenizer is", p.assumeMetaspace(m)
		}
	}
	return "", errors.New("there is none")
}

func (p *pipeline) assumeMetaspace(m metaspaceStage) error {
	p.decoder.byteFallback = true
	p.decoder.rewrite = append(p.decoder.rewrite, func(s string) string { return strings.ReplaceAll(s, m.replacement, " ") })
	if m.prepend != "never" {
		p.decoder.stripContent, p.decoder.stripStart = ' ', 1
	}
	return nil
}
