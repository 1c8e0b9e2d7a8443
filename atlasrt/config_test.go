package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// parseLine parses a command line as main does.
func parseLine(t *testing.T, args ...string) (*commands, *kong.Context, error) {
	t.Helper()
	c := &commands{}
	parser, err := kong.New(c, options()...)
	if err != nil {
		t.Fatal(err)
	}
	context, err := parser.Parse(args)
	return c, context, err
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "atlas.toml")
	if err := os.WriteFile(file, []byte("threads = 3\n[serve]\nport = 9001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name        string
		environment string
		args        []string
		port        int
		from        string
	}{
		{"default", "", []string{"serve"}, 8000, "default"},
		{"file", "", []string{"serve", "--config", file}, 9001, "file"},
		{"environment", "9002", []string{"serve", "--config", file}, 9002, "environment"},
		{"flag", "9002", []string{"serve", "--config", file, "--port", "9003"}, 9003, "flag"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.environment != "" {
				t.Setenv("ATLASRT_PORT", c.environment)
			}
			got, context, err := parseLine(t, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got.Serve.Port != c.port {
				t.Errorf("port is %d, want %d", got.Serve.Port, c.port)
			}
			var printed bytes.Buffer
			printConfig(&printed, context)
			for line := range strings.Lines(printed.String()) {
				if strings.Contains(line, " port ") && !strings.Contains(line, c.from) {
					t.Errorf("printed %q, want it from %s", line, c.from)
				}
			}
		})
	}
}

func TestTablesAreObjects(t *testing.T) {
	for _, head := range []string{"", "[serve]\n"} {
		file := filepath.Join(t.TempDir(), "atlas.toml")
		if err := os.WriteFile(file, []byte(head+"default-chat-template-kwargs = {enable_thinking = false}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := parseLine(t, "serve", "--config", file)
		if text := got.Serve.DefaultChatTemplateKwargs; err != nil || text != `{"enable_thinking":false}` {
			t.Errorf("%q: got %q, %v", head, text, err)
		}
	}
}

func TestConfigurationFileIsStrict(t *testing.T) {
	cases := []struct{ text, want string }{
		{"prot = 1\n", "prot"},
		{"[serve]\nhots = 1\n", "serve.hots"},
		{"[sreve]\nport = 1\n", "sreve"},
		{"port = [\n", "configuration file"},
	}
	for _, c := range cases {
		file := filepath.Join(t.TempDir(), "atlas.toml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := parseLine(t, "serve", "--config", file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error with %q", c.text, err, c.want)
		}
	}
}

// Keys are not printed, and where there is none nothing says that there is one.
func TestKeysAreNotPrinted(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"--api-key", "very-secret-key", "--hub-token", "secret"}, []string{"api-key (set) flag", "hub-token (set) flag", "api-key-file default"}},
		{nil, []string{"api-key default", "hub-token default", "hosts default"}},
		{[]string{"--api-key-file", os.DevNull}, []string{"api-key default", "api-key-file " + os.DevNull + " flag"}},
	} {
		_, context, err := parseLine(t, append([]string{"serve"}, c.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var printed bytes.Buffer
		printConfig(&printed, context)
		var lines []string
		for line := range strings.Lines(printed.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		for _, want := range c.want {
			if !slices.Contains(lines, want) {
				t.Errorf("%v: no line %q in\n%s", c.args, want, &printed)
			}
		}
		if strings.Contains(printed.String(), "secret") {
			t.Errorf("a key was printed:\n%s", &printed)
		}
	}
}

// What may be unset is printed as a value, not as an address.
func TestUnsetValuesArePrinted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"run", "hi", "--temperature", "0.25"}, "0.25"}, {[]string{"run", "hi"}, "  default"}} {
		_, context, err := parseLine(t, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		var printed bytes.Buffer
		printConfig(&printed, context)
		_, after, _ := strings.Cut(printed.String(), " temperature ")
		if line, _, _ := strings.Cut(after, "\n"); !strings.Contains(line, c.want) || strings.Contains(line, "0x") {
			t.Errorf("%v: got %q, want %q", c.args, line, c.want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	cases := []struct {
		text string
		want int64 // -1: an error
	}{{"", 0}, {"8GiB", 8 << 30}, {"1.5 MiB", 3 << 19}, {"4096", 4096}, {"-1GiB", -1}, {"many", -1}, {"9999999999TiB", -1}, {"NaN", -1}}
	for _, c := range cases {
		got, err := parseBytes("--memory", c.text)
		if (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%q: got %d, %v, want %d", c.text, got, err, c.want)
		}
	}
}
