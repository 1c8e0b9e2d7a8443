package main

import (
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

func TestPick(t *testing.T) {
	say := func(role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.Content{Text: text}}
	}
	cases := []struct {
		name     string
		messages []chat.Message
		script   string
		turn     int
	}{
		{"none", []chat.Message{say("user", "Hello.")}, "", 0},
		{"first turn", []chat.Message{say("system", "script: no"), say("user", "Please.\nscript: yes \nNow.")}, "yes", 0},
		{"behind a result", []chat.Message{say("user", "script: a"), say("assistant", "script: b"), say("tool", "script: c")}, "a", 1},
		{"later question", []chat.Message{say("user", "script: a"), say("assistant", ""), say("user", "script: b")}, "b", 0},
		{"later remark", []chat.Message{say("user", "script: a"), say("assistant", ""), say("user", "Hm."), say("assistant", "")}, "a", 2},
		{"parts", []chat.Message{{Role: "user", Content: chat.Content{Parts: []chat.Part{{Type: "text", Text: "script: a"}, {Type: "text", Text: "b"}}}}}, "a", 0},
	}
	for _, c := range cases {
		if script, turn := pick(c.messages); script != c.script || turn != c.turn {
			t.Errorf("%s: got %q, turn %d, want %q, turn %d", c.name, script, turn, c.script, c.turn)
		}
	}
}

func TestThoughtsFitThePrompt(t *testing.T) {
	b := &book{reasoning: "</think>"}
	const thoughts, plain = "<think>\nHm.\n</think>\n\nYes.", "Yes."
	cases := []struct {
		text  string
		begun bool
		on    *bool
		want  string
	}{
		{thoughts, false, nil, thoughts},
		{thoughts, true, nil, "Hm.\n</think>\n\nYes."},
		{thoughts, false, new(false), plain},
		{plain, true, nil, "</think>\n\nYes."},
		{plain, false, new(true), plain},
	}
	for _, c := range cases {
		if got := b.think(c.text, c.begun, c.on); got != c.want {
			t.Errorf("%q, begun %v: got %q, want %q", c.text, c.begun, got, c.want)
		}
	}
}

func TestScriptsOfConformance(t *testing.T) {
	if _, err := readScripts(filepath.Join("..", "..", "..", "conformance", "scripts.json")); err != nil {
		t.Error(err)
	}
}

func TestCache(t *testing.T) {
	prompt := func(n, last int32) (tokens []int32) {
		for i := range n {
			tokens = append(tokens, i)
		}
		return append(tokens, last)
	}
	var c cache
	cases := []struct {
		salt   string
		tokens []int32
		want   int
	}{
		{"", prompt(40, -1), 0}, {"", prompt(40, -2), 32}, {"other", prompt(40, -2), 0}, {"", prompt(40, -2), 32}, {"", prompt(16, -3), 16}, {"", prompt(15, 15), 0},
	}
	for i, step := range cases {
		if got := c.enter(step.salt, step.tokens); got != step.want {
			t.Errorf("step %d: %d tokens are cached, want %d", i, got, step.want)
		}
	}
}
