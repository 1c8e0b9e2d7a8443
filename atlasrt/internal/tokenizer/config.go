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
	default:
		return fmt.Errorf("type %q is not supported", c.Type)
	}
	return nil
}

// template reads "<bos> text <eos>".
func (t *Tokenizer) template(c *component) error {
	texts := 0
	for _, part := range c.Single {
		if part.SpecialToken == nil {
			texts++
			continue
		}
		ids := c.SpecialTokens[part.SpecialToken.ID].IDs
		if len(ids) != 1 || ids[0] < 0 || ids[0] >= int64(t.VocabSize()) {
			return fmt.Errorf("TemplateProcessing: %.40q has ids %v: want one id of the vocabulary", part.SpecialToken.ID, ids)
		}
		switch {
		case texts == 0 && !t.addBOS:
			t.bos, t.addBOS = int32(ids[0]), true
		case texts == 1 && !t.addEOS:
			t.eos, t.addEOS = int32(ids[0]), true
		default:
			return errors.New("TemplateProcessing: want at most one token before the text and one after it")
		}
	}
	if texts != 1 {
		return errors.New("TemplateProcessing: want the text once")
	}
	return nil
}

// configJSON is what a tokenizer_config.json says about tokens that frame a text.
type configJSON struct {
	BOS          tokenName     `json:"bos_token"`
	EOS          tokenName     `json:"eos_token"`
	AddBOS       *bool         `json:"add_bos_token"`
	AddEOS       *bool         `json:"add_eos_token"`
	ChatTemplate chatTemplates `json:"chat_template"`
}

// tokenName is a token, written as a string or as an object with its flags.
type tokenName string

// UnmarshalJSON takes both spellings; null is no token.
func (n *tokenName) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		var object struct {
			Content string `json:"content"`
		}
		err := json.Unmarshal(data, &object)
		*n = tokenName(object.Content)
		return err
	}
	return json.Unmarshal(data, (*string)(n))
}

// chatTemplates is one template, or a list of named ones.
type chatTemplates map[string]string

// UnmarshalJSON takes both spellings; null is no template.
func (c *chatTemplates) UnmarshalJSON(data []byte) error {
	*c = make(chatTemplates)
	if data[0] != '[' {
		var template string
		if err := json.Unmarshal(data, &template); err != nil || template == "" {
			return err
		}
		(*c)["default"] = template
		return nil
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	err := json.Unmarshal(data, &list)
	for _, item := range list {
		(*c)[item.Name] = item.Template
	}
	return err
}

// configure applies a tokenizer_config.json. What it says about bos and eos outweighs the post-processor. A name that is
// no token of the vocabulary counts as none: published files have such.
func (t *Tokenizer) configure(data []byte) error {
	if len(data) > maxFileBytes {
		return fmt.Errorf("%d bytes: at most %d are allowed", len(data), maxFileBytes)
	}
	var file configJSON
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	if id, ok := t.vocabulary.ids[string(file.BOS)]; ok {
		t.bos = id
	}
	if id, ok := t.vocabulary.ids[string(file.EOS)]; ok {
		t.eos = id
	}
	if file.AddBOS != nil {
		t.addBOS = *file.AddBOS
	}
	if file.AddEOS != nil {
		t.addEOS = *file.AddEOS
	}
	t.templates = file.ChatTemplate
	return nil
}
