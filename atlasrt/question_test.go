package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What is shown is a command that a shell takes apart as it is meant.
func TestFirstQuestion(t *testing.T) {
	cases := []struct {
		address, model string
		chats, keys    bool
		url            string
	}{
		{"127.0.0.1:8000", "smollm2", true, false, "http://127.0.0.1:8000/v1/chat/completions"},
		{"0.0.0.0:81", "it's; `id` \"x\"\\", true, true, "http://127.0.0.1:81/v1/chat/completions"},
		{"[::]:81", "m", false, false, "http://[::1]:81/v1/completions"},
		{"[::1]:81", "m", true, false, "http://[::1]:81/v1/chat/completions"},
		{":81", "m", true, false, "http://127.0.0.1:81/v1/chat/completions"},
		{"example.org:81", "m", true, false, "http://example.org:81/v1/chat/completions"},
	}
	for _, c := range cases {
		text := firstQuestion(c.address, c.model, c.chats, c.keys)
		_, command, _ := strings.Cut(text, "curl ")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+command).Output()
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		var body struct {
			Model    string
			Prompt   string
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal([]byte(words[len(words)-1]), &body); err != nil {
			t.Errorf("%s: %q is no JSON: %v", c.address, words[len(words)-1], err)
		}
		if words[0] != c.url || body.Model != c.model || (len(body.Messages) == 1) != c.chats || (body.Prompt == "") != c.chats ||
			slices.Contains(words, "authorization: Bearer KEY") != c.keys {
			t.Errorf("%+v: got %q", c, words)
		}
	}
}
