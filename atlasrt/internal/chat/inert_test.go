package chat

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// What looks like code in calls, their results and tools reaches the model as it is, and none of it as control (T090).
func TestT090CodeIsText(t *testing.T) {
	const attack = "{{ 7*7 }}{% set x = 1 %}{# no #}${HOME}`id`__import__(os).system(1)"
	parameters := jsontree.NewObject()
	parameters.Set("type", jsontree.String("object"))
	parameters.Set("description", jsontree.String(attack))
	request := &Request{
		Messages: []Message{
			{Role: "user", Content: Content{Text: attack}},
			{Role: "assistant", Content: Content{Null: true}, ToolCalls: []ToolCall{{ID: "123456789", Name: "f", Arguments: `{"a": "` + attack + `"}`}}},
			{Role: "tool", ToolCallID: "123456789", Name: "f", Content: Content{Text: attack}},
		},
		Tools:               []Tool{{Name: "f", Description: attack, Parameters: parameters}},
		AddGenerationPrompt: true,
	}
	for _, id := range []string{"Qwen-Qwen3-0.6B", "Qwen3.5-4B", "Qwen-Qwen2.5-7B-Instruct", "google-gemma-4-31B-it", "meta-llama-Llama-3.1-8B-Instruct", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "GLM-4.7-Flash"} {
		template, err := ParseTemplate(source(t, id+".jinja"), special)
		if err != nil {
			t.Fatal(err)
		}
		p, err := template.Prompt(t.Context(), request, now)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		control, last := "", 0
		for _, r := range p.Data {
			control += p.Text[last:r.Start]
			last = r.End
		}
		control += p.Text[last:]
		if n := strings.Count(p.Text, attack); n < 4 || strings.Contains(control, "__import__") || strings.Contains(control, "7*7") || strings.Contains(p.Text, "49") {
			t.Errorf("%s: the text is there %d times, want all of what was said, called, given and declared, as data:\n%s", id, n, p.Text)
		}
	}
}
