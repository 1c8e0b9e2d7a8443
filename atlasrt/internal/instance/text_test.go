package instance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// onlyText is a checkpoint without weights.
type onlyText struct {
	weights.Checkpoint
	config *weights.Config
	assets weights.Assets
}

func (c onlyText) Config() *weights.Config         { return c.config.Fresh() }
func (c onlyText) Assets() (weights.Assets, error) { return c.assets, nil }

func openText(t *testing.T, config string, assets weights.Assets) (*Text, error) {
	t.Helper()
	parsed, err := weights.ParseConfig("config.json", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return OpenText(onlyText{config: parsed, assets: assets})
}

// letters is a tokenizer.json of the letters that templates here need, byte-level, and control tokens from 26 on.
func letters(control ...string) []byte {
	var vocab, added []string
	for i, r := range "abcdefghijklmnopqrstuvwxyz" {
		vocab = append(vocab, fmt.Sprintf("%q: %d", string(r), i))
	}
	for i, token := range control {
		added = append(added, fmt.Sprintf(`{"id": %d, "content": %q, "special": true, "normalized": false}`, 26+i, token))
	}
	return []byte(`{"added_tokens": [` + strings.Join(added, ", ") + `], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
		"decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {` + strings.Join(vocab, ", ") + `}, "merges": []}}`)
}

const turns = `{% for m in messages %}[m]{{ m.role }}{{ m.content }}{% if m.role == "assistant" %} [e]{% endif %}{% endfor %}`

func TestEndsOfAnswers(t *testing.T) {
	gguf := func(v weights.Vocabulary) weights.Assets {
		v.Model, v.Pre, v.Unknown, v.Padding, v.BOS = "gpt2", "gpt-2", -1, -1, -1
		return weights.Assets{Vocabulary: &v}
	}
	control := func(tokens ...string) weights.Assets {
		types := append([]int64{1}, slices.Repeat([]int64{3}, len(tokens))...)
		return gguf(weights.Vocabulary{Tokens: append([]string{"a"}, tokens...), Types: types, EOS: 1, EOT: -1, EOM: -1})
	}
	cases := []struct {
		name, config string
		assets       weights.Assets
		want         []int32
		note         string
	}{
		{"files", `{"eos_token_id": 26}`, weights.Assets{Tokenizer: letters("[m]", "[e]", "[x]"), GenerationConfig: []byte(`{"eos_token_id": [28, "27"]}`)}, []int32{28, 27, 26}, ""},
		{"template", `{"eos_token_id": 28}`, weights.Assets{Tokenizer: letters("[m]", "[e]", "[x]"), ChatTemplate: []byte(turns)}, []int32{28, 27}, "[e] (27), with which the chat template ends a turn"},
		{"template ends with the start of a turn", `{}`, weights.Assets{Tokenizer: letters("[m]"), ChatTemplate: []byte(strings.ReplaceAll(turns, " [e]", "\n"))}, []int32{26}, "[m] (26"},
		{"template ends with text", `{"eos_token_id": 26}`, weights.Assets{Tokenizer: letters("[x]"), ChatTemplate: []byte(turns)}, []int32{26}, ""},
		{"template refuses two turns", `{}`, weights.Assets{Tokenizer: letters("[e]"), ChatTemplate: []byte(`{% if messages|length > 2 %}{{ raise_exception("one") }}{% endif %}` + turns)}, []int32{26}, "[e]"},
		{"template refuses all", `{"eos_token_id": 26}`, weights.Assets{Tokenizer: letters("[e]"), ChatTemplate: []byte(`{{ raise_exception("no") }}`)}, []int32{26}, ""},
		{"known texts", `{}`, control("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|other|>"), []int32{1, 2, 3}, "<|eot_id|> (2), <|eom_id|> (3)"},
		{"known text that is no control token", `{}`, gguf(weights.Vocabulary{Tokens: []string{"a", "<|x|>", "</s>"}, Types: []int64{1, 3, 1}, EOS: 1, EOT: -1, EOM: -1}), []int32{1}, ""},
		{"messages within answers", `{}`, control("<|return|>", "<|call|>", "<|end|>"), []int32{1, 2}, "<|call|> (2)"},
		{"list key", `{}`, gguf(weights.Vocabulary{Tokens: []string{"a", "b", "c"}, EOS: -1, EOT: 1, EOM: -1, EndTokens: []int{2}}), []int32{1, 2}, ""},
		{"ids of no token", `{"eos_token_id": [26, 900, -1]}`, weights.Assets{Tokenizer: letters("[e]")}, []int32{26}, "the end token 900 is left out: there are 27 tokens"},
		{"many ids of no token", `{"eos_token_id": [900, 26, 901, 902, 900]}`, weights.Assets{Tokenizer: letters("[e]")}, []int32{26}, "the end token 900 is left out: there are 27 tokens (and so are 2 more)"},
		{"none", `{"eos_token_id": -1}`, weights.Assets{Tokenizer: letters()}, nil, "no token ends an answer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text, err := openText(t, c.config, c.assets)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(text.End, c.want) {
				t.Errorf("ends %v, want %v", text.End, c.want)
			}
			if notes := strings.Join(slices.Concat(text.Notes, text.Details), "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

func TestTemplatesWriteSpecialTokens(t *testing.T) {
	const template = `{{ bos_token }}{{ pad_token }}{{ unk_token }}{{ image_token }}{% for t in additional_special_tokens %}{{ t }}{% endfor %}{{ messages[0].content }}{{ sep_token }}`
	ask := &chat.Request{Messages: []chat.Message{{Role: "user", Content: chat.Content{Text: "x"}}}}
	cases := []struct {
		name   string
		assets weights.Assets
		want   []int32
	}{
		{"tokenizer_config.json", weights.Assets{Tokenizer: letters("[b]", "[p]", "[i]", "[s]"), TokenizerConfig: []byte(
			`{"bos_token": "[b]", "pad_token": {"content": "[p]"}, "extra_special_tokens": {"image_token": "[i]"}, "additional_special_tokens": ["[s]", "[b]"]}`)}, []int32{26, 27, 28, 29, 26, 23}},
		{"special_tokens_map.json", weights.Assets{Tokenizer: letters("[b]", "[s]"), TokenizerConfig: []byte(`{}`), SpecialTokensMap: []byte(`{"bos_token": "[b]", "sep_token": "[s]"}`)}, []int32{26, 23, 27}},
		{"new tokens", weights.Assets{Tokenizer: letters(), TokenizerConfig: []byte(`{"unk_token": "[u]"}`)}, []int32{26, 23}},
		{"GGUF", weights.Assets{Vocabulary: &weights.Vocabulary{Model: "gpt2", Pre: "gpt-2", Tokens: []string{"x", "[b]", "[p]", "[u]", "[s]"}, Types: []int64{1, 3, 3, 3, 3},
			BOS: 1, EOS: -1, EOT: -1, EOM: -1, Padding: 2, Unknown: 3, Separator: 4, Class: 9, Mask: -1}}, []int32{1, 2, 3, 0, 4}},
	}
	for _, c := range cases {
		c.assets.ChatTemplate = []byte(template)
		text, err := openText(t, `{}`, c.assets)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, err := text.Prompt(t.Context(), ask, time.Time{}, 100); !slices.Equal(got.Tokens, c.want) || err != nil {
			t.Errorf("%s: prompt %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

func TestChatTemplatesOfFiles(t *testing.T) {
	config := []byte(`{"chat_template": {"default": "config"}}`)
	older := []byte(`{"chat_template": [{"name": "default", "template": "older"}]}`)
	cases := []struct {
		name   string
		assets weights.Assets
		want   string
	}{
		{"file of its own", weights.Assets{ChatTemplate: []byte("own"), TokenizerConfig: config, ChatTemplateJSON: older}, "own"},
		{"config", weights.Assets{TokenizerConfig: config, ChatTemplateJSON: older}, "config"},
		{"older file", weights.Assets{ChatTemplateJSON: older}, "older"},
		{"none", weights.Assets{}, ""},
	}
	for _, c := range cases {
		c.assets.Tokenizer = letters()
		parsed, err := weights.ParseConfig("config.json", []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ChatTemplate(onlyText{config: parsed, assets: c.assets}); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
