package jinja

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A render ends with its request, also where one operation reads a long text.
func TestRenderEndsWithItsContext(t *testing.T) {
	cause := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	cases := []struct{ name, source string }{
		{"loop", "{% for i in range(100000) %}{{ i }}{% endfor %}"},
		{"text", "{{ text|upper }}{{ text|upper }}"},
		{"words", "{% for w in text.split(' ') %}{{ w }}{% endfor %}"},
	}
	for _, c := range cases {
		template, err := Parse(c.source)
		if err != nil {
			t.Fatal(err)
		}
		variables := NewDict()
		variables.Set(Control("text"), Data(strings.Repeat("some words ", 20_000)))
		if p, err := template.Prompt(variables, Options{Context: ctx, Now: time.Time{}}); !errors.Is(err, cause) {
			t.Errorf("%s: got %d bytes, %v, want the cause %v", c.name, len(p.Text), err, cause)
		}
		if _, err := template.Prompt(variables, Options{Context: context.Background()}); err != nil {
			t.Errorf("%s: %v without an end", c.name, err)
		}
	}
}

// What a document takes is bounded: by its own size for texts, and by the number of values for the rest.
func TestDocumentsTakeBoundedMemory(t *testing.T) {
	const size = 8 << 20
	many := func(text string) string { return "[" + strings.Repeat(text+",", size/(len(text)+1)) + "0]" }
	cases := []struct {
		name, document string
		most           uint64 // bytes
	}{
		{"text", `"` + strings.Repeat(" ", size) + `"`, size + size/8},
		{"escapes", `"` + strings.Repeat(`\n`, size/2) + `"`, 2 * size},
		{"small integers", many("1"), 48 << 20},
		{"large integers", many("123456789012345678901234567890"), 96 << 20},
		{"empty objects", many("{}"), 64 << 20},
		{"objects", many(`{"a":1}`), 64 << 20},
		{"messages", `{"messages":` + many(`{"role":"user","content":""}`) + `}`, 64 << 20},
		{"depth", strings.Repeat("[", size), 1 << 20},
		{"keys", "{" + strings.Repeat(`"a":{"b":`, size/9), 1 << 20},
	}
	for _, c := range cases {
		document := []byte(c.document)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeJSON(document, JSONLimits{})
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > c.most {
			t.Errorf("%s: %d bytes of JSON take %d (%v), want at most %d", c.name, len(document), got, err, c.most)
		}
	}
}
