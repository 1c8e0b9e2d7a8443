package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
)

// A model is known by what it is called and by what it calls itself; its checkpoint has the last word.
func TestPresetOfCheckpoint(t *testing.T) {
	config := func(kind string) *weights.Config {
		c, err := weights.ParseConfig("config.json", []byte(`{"model_type": "`+kind+`", "vocab_size": 300}`))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	made, err := dummy.New(config("llama"), nil, dummy.Options{Text: true})
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := made.Assets()
	if err != nil {
		t.Fatal(err)
	}
	const smol, hybrid = "You are a helpful AI assistant named SmolLM, trained by Hugging Face", "{% if enable_thinking %}{% endif %}"
	cases := []struct {
		kind, model, inside, template, generation string
		want                                      string // temperature and top_p, and what was logged
	}{
		{"llama", "SmolLM2-135M-Instruct.Q4_1", "", smol, "", "0.2 preset smollm2, 0.9 preset smollm2"},
		{"llama", "renamed", "Smollm2 135M 8k Lc100K Mix1 Ep2", smol, "", "0.2 preset smollm2, 0.9 preset smollm2"},
		{"llama", "SmolLM2-135M-Instruct", "", smol, `{"temperature": 0.7}`, "0.7 generation_config.json, 0.9 preset smollm2"},
		{"llama", "SmolLM2-135M-Instruct", "", smol, `{"do_sample": false}`, "0 generation_config.json: do_sample is false, 1 default"},
		{"llama", "renamed", "", smol, "", "1 default, 1 default"},
		{"llama", "SmolLM2-135M-Instruct", "", "another", "", "1 default, 1 default"},
		{"mistral", "SmolLM2-135M-Instruct", "", smol, "", "1 default, 1 default"},
		{"qwen3", "Qwen3-8B", "Qwen3 8B Instruct 2507", hybrid, "", "1 default, 1 default, several presets"},
	}
	for _, c := range cases {
		assets := tokenizer
		assets.Name, assets.ChatTemplate, assets.GenerationConfig = c.inside, []byte(c.template), nil
		if c.generation != "" {
			assets.GenerationConfig = []byte(c.generation)
		}
		checkpoint, err := dummy.New(config(c.kind), nil, dummy.Options{Assets: assets})
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		text, err := answerFlags{}.text(modelFlags{Model: c.model}, checkpoint, slog.New(slog.NewTextHandler(&logged, nil)))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		s := text.Sampling()
		got := fmt.Sprintf("%s %s, %s %s", s[0].Value, s[0].From, s[1].Value, s[1].From)
		if strings.Contains(logged.String(), "several presets") {
			got += ", several presets"
		}
		if got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
