package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Names have two spellings of one flag, wherever they are set.
func TestServedModelName(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "atlas.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := []struct {
		environment string
		args        []string
	}{
		{"", []string{"--served-model-name", "a,b"}},
		{"", []string{"--served-model-name", "a", "--served-model-name", "b"}},
		{"", []string{"--name", "a,b"}},
		{"ATLASRT_SERVED_MODEL_NAME", nil},
		{"ATLASRT_NAME", nil},
		{"", []string{"--config", file("[serve]\nserved-model-name = \"a,b\"\n")}},
		{"", []string{"--config", file("[serve]\nname = \"a,b\"\n")}},
		{"", []string{"--config", file("name = \"a,b\"\n")}},
	}
	for _, c := range cases {
		if c.environment != "" {
			t.Setenv(c.environment, "a,b")
		}
		got, _, err := parseLine(t, append([]string{"serve"}, c.args...)...)
		if c.environment != "" {
			os.Unsetenv(c.environment)
		}
		if err != nil {
			t.Errorf("%v: %v", c, err)
		} else if want := []string{"a", "b"}; !slices.Equal(got.Serve.names(), want) {
			t.Errorf("%v: got %v, want %v", c, got.Serve.names(), want)
		}
	}
}

// An IPv6 address may be written as in URLs.
func TestAddress(t *testing.T) {
	cases := []struct{ host, want string }{
		{"127.0.0.1", "127.0.0.1:8000"}, {"localhost", "localhost:8000"}, {"::1", "[::1]:8000"}, {"[::1]", "[::1]:8000"},
		{"fe80::1%eth0", "[fe80::1%eth0]:8000"}, {"[fe80::1%eth0]", "[fe80::1%eth0]:8000"}, {"::", "[::]:8000"}, {"", ":8000"},
	}
	for _, c := range cases {
		got, _, err := parseLine(t, "serve", "--host", c.host)
		if err != nil {
			t.Errorf("%q: %v", c.host, err)
		} else if got.Serve.address() != c.want {
			t.Errorf("%q: got %q, want %q", c.host, got.Serve.address(), c.want)
		}
	}
}

// withoutTime leaves the time of each log line out.
func withoutTime(text string) string {
	return regexp.MustCompile(`time=\S+ |"time":"[^"]*",`).ReplaceAllString(text, "")
}

func TestLogFlags(t *testing.T) {
	cases := []struct {
		args []string
		want string
	}{
		{nil, "level=INFO msg=i\nlevel=WARN msg=w\n"},
		{[]string{"--log-level", "warn"}, "level=WARN msg=w\n"},
		{[]string{"--log-level=debug", "--log-format=text"}, "level=DEBUG msg=d\nlevel=INFO msg=i\nlevel=WARN msg=w\n"},
		{[]string{"--log-level=error"}, ""},
		{[]string{"--log-format", "json", "--log-level", "warn"}, "{\"level\":\"WARN\",\"msg\":\"w\"}\n"},
	}
	for _, c := range cases {
		got, _, err := parseLine(t, append([]string{"serve"}, c.args...)...)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		var lines bytes.Buffer
		log := got.Serve.logger(&lines)
		log.Debug("d")
		log.Info("i")
		log.Warn("w")
		if text := withoutTime(lines.String()); text != c.want {
			t.Errorf("%v: got %q, want %q", c.args, text, c.want)
		}
	}
	for _, args := range [][]string{{"--log-level", "loud"}, {"--log-format", "xml"}} {
		if _, _, err := parseLine(t, append([]string{"serve"}, args...)...); err == nil {
			t.Errorf("%v: accepted", args)
		}
	}
}

// What is wrong with the flags is known before a port is taken or a model is loaded, and names the flag.
func TestServeFlagsThatMakeNoSense(t *testing.T) {
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"--body-limit", "lots"}, "--body-limit"}, {[]string{"--body-limit", "0"}, "--body-limit"}, {[]string{"--port", "65536"}, "--port 65536 is no port"}, {[]string{"--port=-1"}, "--port -1 is no port"},
		{[]string{"--timeout", "0s"}, "--timeout"}, {[]string{"--timeout=-1s"}, "--timeout"}, {[]string{"--max-queue", "0"}, "--max-queue"}, {[]string{"--queue-tokens", "0"}, "--queue-tokens"},
		{[]string{"--cors-origin", "app.example"}, `"app.example" is no origin`}, {[]string{"--cors-origin", "https://a/"}, "is no origin"}, {[]string{"--hosts", "."}, "is no name of a host"},
		{[]string{"--served-model-name", "a,b,a"}, `name "a" is empty or given twice`}, {[]string{"--api-key", "short"}, "use at least 8"},
		{[]string{"--api-key="}, "hold no key"}, {[]string{"--api-key-file", os.DevNull}, "hold no key"},
	}
	for _, c := range cases {
		got, _, err := parseLine(t, append([]string{"serve", "--load-dummy", "none.json"}, c.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.Serve.config(nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want an error with %q", c.args, err, c.want)
		}
	}
}

// No time to drain is no time, not the default.
func TestNoTimeToDrain(t *testing.T) {
	got, _, err := parseLine(t, "serve", "--drain", "0s")
	if err != nil {
		t.Fatal(err)
	}
	config, err := got.Serve.config(nil)
	if d := config.Limits.Drain; err != nil || d <= 0 || d > time.Millisecond {
		t.Errorf("--drain 0s: got %v, %v, want next to nothing", d, err)
	}
}
