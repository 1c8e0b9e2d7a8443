package tokenizer

import (
	"strings"
	"testing"
)

func TestConfigNamesTokensAndTemplates(t *testing.T) {
	const template = `"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
		"single": [{"SpecialToken": {"id": "a"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "b"}}],
		"special_tokens": {"a": {"ids": [0]}, "b": {"ids": [1]}}}]}`
	cases := []struct {
		name, processor, config string
		bos, eos                int32 // -1: none
		addBOS, addEOS          bool
		chat                    string
	}{
		{"nothing", "", "", -1, -1, false, false, ""},
		{"template", template, "", 0, 1, true, true, ""},
		{"config outweighs template", template, `{"bos_token": "ab", "add_bos_token": true, "add_eos_token": false}`, 2, 1, true, false, ""},
		{"objects", "", `{"bos_token": {"content": "b"}, "eos_token": {"content": "a"}}`, 1, 0, false, false, ""},
		{"null", "", `{"bos_token": null, "eos_token": "a", "chat_template": null}`, -1, 0, false, false, ""},
		{"new token", "", `{"bos_token": "<s>", "add_bos_token": true}`, 3, -1, true, false, ""},
		{"no token", "", `{"bos_token": 1, "add_bos_token": "yes"}`, -1, -1, false, false, ""},
		{"chat template", "", `{"chat_template": "{{x}}"}`, -1, -1, false, false, "{{x}}"},
		{"chat templates", "", `{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}`, -1, -1, false, false, "d"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file, config := small, []byte(nil)
			if c.processor != "" {
				file = strings.Replace(file, `"post_processor": null`, c.processor, 1)
			}
			if c.config != "" {
				config = []byte(c.config)
			}
			tokenizer, err := FromJSON([]byte(file), config)
			if err != nil {
				t.Fatal(err)
			}
			bos, hasBOS := tokenizer.BOS()
			eos, hasEOS := tokenizer.EOS()
			if bos != c.bos || eos != c.eos || hasBOS != (bos >= 0) || hasEOS != (eos >= 0) {
				t.Errorf("bos %d, %t, eos %d, %t; want %d, %d", bos, hasBOS, eos, hasEOS, c.bos, c.eos)
			}
			if tokenizer.AddBOS() != c.addBOS || tokenizer.AddEOS() != c.addEOS {
				t.Errorf("add bos %t, add eos %t; want %t, %t", tokenizer.AddBOS(), tokenizer.AddEOS(), c.addBOS, c.addEOS)
			}
			if got, _ := tokenizer.ChatTemplate(); got != c.chat {
				t.Errorf("ChatTemplate() = %q, want %q", got, c.chat)
			}
		})
	}
	for _, config := range []string{"", "[]", `{"chat_template": 1}`, `{"chat_template": [1]}`} {
		if _, err := FromJSON([]byte(small), []byte(config)); err == nil {
			t.Errorf("config %q gives no error", config)
		}
	}
}
