package main

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

func TestScreenful(t *testing.T) {
	thought := func(text string) chat.Event { return chat.Event{Kind: chat.EventReasoning, Text: text} }
	text := func(text string) chat.Event { return chat.Event{Kind: chat.EventText, Text: text} }
	cases := []struct {
		name   string
		width  int
		events []chat.Event
		want   string
	}{
		{"an answer", 20, []chat.Event{{Kind: chat.EventStart}, text("yes"), text(" it is"), {Kind: chat.EventEnd}}, "yes it is\n"},
		{"thoughts", 20, []chat.Event{thought("Hm"), thought("m. "), text("yes")}, "\x1b[2mHmm. \x1b[22m\n\nyes\n"},
		{"thoughts that wrap", 8, []chat.Event{thought("this is so"), text("yes")}, "\x1b[2mthis is\nso\x1b[22m\n\nyes\n"},
		{"thoughts alone", 20, []chat.Event{thought("Hm.")}, "\x1b[2mHm.\x1b[22m\n"},
		{"thoughts between", 20, []chat.Event{text("so"), thought("Hm."), text("yes")}, "so\n\n\x1b[2mHm.\x1b[22m\n\nyes\n"},
		{"a thought that commands", 20, []chat.Event{thought("\x1b[22mHm.")}, "\x1b[2m␛[22mHm.\x1b[22m\n"},
		{"nothing", 20, nil, "\n"},
		{"to a file", 0, []chat.Event{thought("Hm."), text("yes")}, "yes\n"},
		{"thoughts alone to a file", 0, []chat.Event{thought("Hm.")}, "\n"},
	}
	for _, c := range cases {
		var out strings.Builder
		var thoughts, answer string
		s := newScreenful(&out, c.width)
		for _, e := range c.events {
			if err := s.show([]chat.Event{e}); err != nil {
				t.Fatal(err)
			}
			if e.Kind == chat.EventReasoning {
				thoughts += e.Text
			} else {
				answer += e.Text
			}
		}
		if err := s.end(); err != nil || out.String() != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, out.String(), err, c.want)
		}
		if s.said.Role != "assistant" || s.said.Reasoning != thoughts || s.said.Content.Text != answer {
			t.Errorf("%s: kept %+v", c.name, s.said)
		}
	}
}
