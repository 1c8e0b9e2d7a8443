package parse

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// What a token of four bytes costs, in text and in the arguments of a call.
func BenchmarkPush(b *testing.B) {
	cases := []struct{ name, open, token string }{
		{"text", "", "word"},
		{"arguments", `<tool_call>{"name": "f", "arguments": {"x": "`, "word"},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			p := New(Config{Reasoning: FindReasoning("think"), Tools: FindTools("hermes"), Declared: []chat.Tool{{Name: "f"}}})
			defer p.Close()
			p.Push(c.open)
			for b.Loop() {
				p.Push(strings.Clone(c.token))
			}
		})
	}
}
