package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Help that is asked for goes to standard output and is no failure; no command asks for it, as with docker, git's kin and ollama.
// What is mistyped is a mistake, and the answer names what may be meant.
func TestCommandLines(t *testing.T) {
	t.Setenv("ATLASRT_VERSION", "true") // a name that people may use for something else
	cases := []struct {
		args           string
		code           int
		stdout, stderr string // pieces; "" for nothing at all
	}{
		{"", 0, "Usage: atlasrt <command>", ""},
		{"--help", 0, "Usage: atlasrt <command>", ""},
		{"serve --help", 0, "--port", ""},
		{"--version", 0, "kernels: ", ""},
		{"tokenize", 2, "", "--texts FILE"},
		{"tokenize a --texts " + os.DevNull, 2, "", "give one text"},
		{"render", 2, "", "--request FILE"},
		{"render - --system x", 2, "", "--system goes with a question"},
		{"servee", 2, "", `did you mean "serve"?`},
		{"serve --prot 1", 2, "", `did you mean "--port"?`},
		{"doctor --print-config", 0, "setting", ""},
	}
	for _, c := range cases {
		var stdout, stderr bytes.Buffer
		code := execute(strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !holds(stdout.String(), c.stdout) || !holds(stderr.String(), c.stderr) {
			t.Errorf("%q: got code %d, stdout %.300q, stderr %.300q; want %d, %q, %q", c.args, code, &stdout, &stderr, c.code, c.stdout, c.stderr)
		}
	}
}

// holds reports whether text holds piece; nothing holds only nothing.
func holds(text, piece string) bool {
	return piece == "" && text == "" || piece != "" && strings.Contains(text, piece)
}

// The help of a flag that takes one of some values lists them.
func TestHelpListsValues(t *testing.T) {
	parser, err := kong.New(&commands{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		for _, flag := range command.Flags {
			for value := range flag.EnumMap() {
				if !strings.Contains(flag.Help, value) {
					t.Errorf("%s --%s: %q does not name %s", command.Name, flag.Name, flag.Help, value)
				}
			}
		}
	}
}
