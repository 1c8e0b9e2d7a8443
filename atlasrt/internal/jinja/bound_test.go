package jinja

import (
	"context"
	"errors"
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
