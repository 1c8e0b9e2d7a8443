package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// byteTokenizer knows four bytes and a control token.
const byteTokenizer = `{"version": "1.0", "added_tokens": [{"id": 4, "content": "<end>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
	"normalizer": null, "post_processor": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
	"decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
	"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "Ċ": 3}, "merges": []}}`

func TestArgument(t *testing.T) {
	cases := []struct{ text, stdin, want string }{
		{"text", "unread", "text"},
		{"", "unread", ""},
		{"-", "two\nlines\n", "two\nlines\n"},
		{"-", "", ""},
	}
	for _, c := range cases {
		if got, err := argument(c.text, strings.NewReader(c.stdin)); string(got) != c.want || err != nil {
			t.Errorf("%q with %q: got %q, %v, want %q", c.text, c.stdin, got, err, c.want)
		}
	}
	if _, err := argument("-", strings.NewReader(strings.Repeat("x", mostInput+1))); err == nil {
		t.Error("a text without end: want an error")
	}
}

func TestTokensOfAFileOfTexts(t *testing.T) {
	folder := t.TempDir()
	texts, model := filepath.Join(folder, "texts.json"), filepath.Join(folder, "tokenizer.json")
	put(t, texts, `["ab", "", "<end>a"]`)
	put(t, model, byteTokenizer)
	var out bytes.Buffer
	if err := (&tokenizeCommand{Texts: texts, Tokenizer: model}).file(&out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "[[0,1],[],[4,0]]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPrintTokens(t *testing.T) {
	tok, err := tokenizer.FromJSON([]byte(byteTokenizer), nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		text string
		want []string // of each line, its words
	}{
		{"", []string{"0 tokens"}},
		{"a", []string{"id piece", `0 "a"`, "1 token"}},
		{"b\n<end>", []string{"id piece", `1 "b"`, `3 "\n"`, `4 "<end>" special`, "3 tokens"}},
	}
	for _, c := range cases {
		var out bytes.Buffer
		if err := printTokens(&out, tok, encode(tok, c.text)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// A question is rendered with the model's special tokens, as a talk asks it; a request as it is.
func TestRender(t *testing.T) {
	folder := written(t, filepath.Join(t.TempDir(), "tiny"))
	put(t, filepath.Join(folder, "tokenizer.json"), byteTokenizer)
	put(t, filepath.Join(folder, "tokenizer_config.json"), `{"bos_token": "<end>"}`)
	put(t, filepath.Join(folder, "chat_template.jinja"), `{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}`)
	request := filepath.Join(t.TempDir(), "request.json")
	put(t, request, `{"messages": [{"role": "user", "content": "file"}]}`)
	text := func(s string) *string { return &s }
	cases := []struct {
		what string
		c    renderCommand
		want string
	}{
		{"a question", renderCommand{Question: text("hi")}, "<end>user:hi;assistant:"},
		{"an empty one", renderCommand{Question: text("")}, "<end>user:;assistant:"},
		{"with a system message", renderCommand{Question: text("hi"), System: "brief"}, "<end>system:brief;user:hi;assistant:"},
		{"standard input", renderCommand{Question: text("-")}, "user:stdin;"},
		{"a file", renderCommand{Request: request}, "user:file;"},
	}
	for _, c := range cases {
		c.c.Model = folder
		got, err := c.c.render(strings.NewReader(`{"messages": [{"role": "user", "content": "stdin"}]}`), time.Time{})
		if got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.what, got, err, c.want)
		}
	}
}

// What a file or a pipe holds comes after the question of the command line.
func TestQuestionWithStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "input")
	cases := []struct{ prompt, input, want string }{
		{"Summarise:", "one\ntwo\n", "Summarise:\n\none\ntwo"},
		{"Why?", "", "Why?"},
		{"Why?", " \n", "Why?"},
		{"", "one\n", ""}, // each line is a question
	}
	for _, c := range cases {
		put(t, file, c.input)
		stdin, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (&runCommand{Prompt: c.prompt}).question(stdin); got != c.want || err != nil {
			t.Errorf("%q with %q: got %q, %v, want %q", c.prompt, c.input, got, err, c.want)
		}
		stdin.Close()
		if got, err := (&runCommand{Prompt: c.prompt}).question(stdin); got != c.prompt || err != nil { // closed
			t.Errorf("%q with none: got %q, %v", c.prompt, got, err)
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if got, err := (&runCommand{Prompt: "Why?"}).question(null); got != "Why?" || err != nil {
		t.Errorf("a device: got %q, %v", got, err)
	}
}
