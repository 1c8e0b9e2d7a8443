package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
)

var update = flag.Bool("update", false, "write what is found in the answers of testdata/parse, to be looked at")

// What is found in answers, at every cut.
func TestParse(t *testing.T) {
	folder := filepath.Join("testdata", "parse")
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(`{"model_type": "llama", "vocab_size": 300}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tools := []string{"--tools", filepath.Join(folder, "tools.json")}
	bytes := []string{"--tool-call-parser", "hermes", "--reasoning-parser", "think"}
	model := append([]string{"--load-dummy", config}, bytes...) // has control tokens and ends
	cases := []struct {
		want, text string
		args       []string
	}{
		{"calls", "calls.txt", bytes}, {"calls", "calls.txt", append(bytes, tools...)}, {"calls", "calls.txt", model},
		{"calls-text", "calls.txt", []string{"--tool-call-parser", "none", "--reasoning-parser", "think"}},
		{"ended", "ended.txt", append(model, "--prompt-thinking")}, {"ended-text", "ended.txt", append(bytes, "--prompt-thinking")},
		{"cut", "cut.txt", bytes}, {"undeclared", "undeclared.txt", append(bytes, tools...)}, {"declared", "undeclared.txt", bytes},
	}
	for _, c := range cases {
		args := append([]string{"parse", "--every-cut", "--text", filepath.Join(folder, c.text)}, c.args...)
		got, err := parsedBy(t, args)
		if err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		events, cuts, _ := strings.Cut(got, `{"kind":"cuts"`)
		file := filepath.Join(folder, c.want+".jsonl")
		if *update {
			if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || events != string(want) || !strings.HasPrefix(cuts, `,"same":`) || cuts == `,"same":0}` {
			t.Errorf("%v:\n got %s (cuts%s), %v\nwant %s", args, events, cuts, err, want)
		}
	}
}

// parsedBy is what a command line prints.
func parsedBy(t *testing.T, args []string) (string, error) {
	t.Helper()
	c, _, err := parseLine(t, args...)
	if err != nil {
		return "", err
	}
	text, err := c.Parse.input()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = c.Parse.print(&out, text)
	return out.String(), err
}

// A cut that gives other events is named.
func TestOtherEventsAreNamed(t *testing.T) {
	c, _, err := parseLine(t, "parse", "--tool-call-parser", "hermes", "--text", "-")
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := c.Parse.reader()
	if err != nil {
		t.Fatal(err)
	}
	r := completion.Replay{Generator: g, Options: completion.Options{Chat: true}}
	_, err = everyCut(&r, g.Tokenizer.Encode("abc", false), []chat.Event{{Kind: chat.EventText, Text: "ab"}})
	const want = "cut in pieces of 1 tokens there are other events:\ngot\n{\"kind\":\"text\",\"text\":\"abc\"}\n{\"kind\":\"finish\",\"reason\":\"stop\"}\nwant\n{\"kind\":\"text\",\"text\":\"ab\"}\n"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestParseFlagsThatMakeNoSense(t *testing.T) {
	folder := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(folder, "tools.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	some := filepath.Join("testdata", "parse", "calls.txt")
	cases := []struct {
		args  []string
		tools string
		want  string
	}{
		{[]string{"--text", some}, "", "give --text, and --model, or say with --tool-call-parser and --reasoning-parser"},
		{[]string{"--tool-call-parser=hermes"}, "", "missing flags: --text=FILE"},
		{[]string{"--tool-call-parser=hermes", "--text", folder + "/none"}, "", "--text: "},
		{[]string{"--model=x", "--tokenizer", some, "--text", some}, "", "--tokenizer goes without --model"},
		{[]string{"--tool-call-parser=hermes", "--tokenizer", some, "--text", some}, "", "tokenizer"},
		{[]string{"--tool-call-parser=hermes", "--text", some}, "{}", "must hold a JSON array of one tool or more"},
		{[]string{"--tool-call-parser=hermes", "--text", some}, "[", "--tools: "},
		{[]string{"--tool-call-parser=hermes", "--text", some}, `[{"name": "a"}, {"type": "function", "function": {}}]`, "tool 1 has no name"},
	}
	for _, c := range cases {
		if c.tools != "" {
			c.args = append(c.args, "--tools", file(c.tools))
		}
		if _, err := parsedBy(t, append([]string{"parse"}, c.args...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %s: got %v, want an error with %q", c.args, c.tools, err, c.want)
		}
	}
}
