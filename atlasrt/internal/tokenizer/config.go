package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// postProcessor reads from a post-processor which tokens it puts around a text.
func (t *Tokenizer) postProcessor(c *component) error {
	if c == nil {
		return nil
	}
	switch c.Type {
	case "Sequence":
		for i := range c.Processors {
			if err := t.postProcessor(&c.Processors[i]); err != nil {
				return err
			}
		}
	case "ByteLevel": // moves offsets only
	case "TemplateProcessing":
		return t.template(c)
	case "BertProcessing", "RobertaProcessing":
		if len(t.before) > 0 {
			return fmt.Errorf("%s: there are tokens before the text already", c.Type)
		}
		var first, last [2]json.RawMessage
		var before, after int64
		if err := errors.Join(json.Unmarshal(c.First, &first), json.Unmarshal(c.Last, &last)); err != nil {
			return fmt.Errorf("%s: cls and sep: %w", c.Type, err)
		}
		if err := errors.Join(json.Unmarshal(first[1], &before), json.Unmarshal(last[1], &after)); err != nil {
			return fmt.Errorf("%s: cls and sep: want a token and its id: %w", c.Type, err)
		}
		if most := int64(t.VocabSize()); before < 0 || after < 0 || before >= most || after >= most {
			return fmt.Errorf("%s: ids %d and %d: the vocabulary has %d", c.Type, before, after, most)
		}
		t.before = []int32{int32(before)}
		t.bos, t.addBOS, t.eos, t.addEOS = int32(before), true, int32(after), true
	default:
		return fmt.Errorf("type %q is not supported", c.Type)
	}
	return nil
}

// template reads "<bos> text <eos>". Several tokens may come before the text, and one behind it.
func (t *Tokenizer) template(c *component) error {
	texts := 0
	for _, part := range c.Single {
		if part.SpecialToken == nil {
			texts++
			continue
		}
		ids := c.SpecialTokens[part.SpecialToken.ID].IDs
		if len(ids) == 0 {
			return fmt.Errorf("TemplateProcessing: %.40q has no ids", part.SpecialToken.ID)
		}
		for _, id := range ids {
			if id < 0 || id >= int64(t.VocabSize()) {
				return fmt.Errorf("TemplateProcessing: %.40q has the ids %v: the vocabulary has %d", part.SpecialToken.ID, ids, t.VocabSize())
			}
			switch {
			case texts == 0 && len(t.before) < maxFrame:
				t.before = append(t.before, int32(id))
				t.bos, t.addBOS = t.before[0], true
			case texts == 1 && !t.addEOS:
				t.eos, t.addEOS = int32(id), true
			default:
				return fmt.Errorf("TemplateProcessing: want at most %d tokens before the text and one after it", maxFrame)
			}
		}
	}
	if texts != 1 {
		return errors.New("TemplateProcessing: want the text once")
	}
	return nil
}

// maxFrame is how many tokens may come before a text: the most that published files have is two.
const maxFrame = 16

// configure applies what the settings say about the tokens that frame a text; it outweighs the post-processor. A name that
// is no token of the vocabulary counts as none: published files have such.
func (t *Tokenizer) configure(s *settings) {
	if name, ok := s.token("bos_token"); ok {
		if id, ok := t.vocabulary.ids[name]; ok {
			t.bos = id
		}
	}
	if name, ok := s.token("eos_token"); ok {
		if id, ok := t.vocabulary.ids[name]; ok {
			t.eos = id
		}
	}
	if s.addBOS != nil {
		t.addBOS = *s.addBOS
	}
	if s.addEOS != nil {
		t.addEOS = *s.addEOS
	}
	t.templates = s.templates
	for _, named := range s.named {
		if text := named.token.content; text != "" {
			t.named = append(t.named, SpecialToken{Name: named.name, Texts: []string{text}})
		}
	}
	if len(s.listed) > 0 {
		list := SpecialToken{Name: "additional_special_tokens", List: true}
		for _, token := range s.listed {
			list.Texts = append(list.Texts, token.content)
		}
		t.named = append(t.named, list)
	}
}
