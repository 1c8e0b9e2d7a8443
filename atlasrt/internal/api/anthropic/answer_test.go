package anthropic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// head is that of all answers of these tests.
func head() api.Head { return api.Head{ID: "0123456789abcdef01234567", Created: 1, Model: "m"} }

// Events, for short.
func start() chat.Event { return chat.Event{Usage: chat.Usage{Prompt: 9, Cached: 4}} }
func text(s string) chat.Event {
	return chat.Event{Kind: chat.EventText, Text: s}
}
func thought(s string) chat.Event {
	return chat.Event{Kind: chat.EventReasoning, Text: s}
}
func called(index int, name, arguments string) chat.Event {
	return chat.Event{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Index: index, Name: name, Arguments: arguments}}
}
func finish(f chat.Finish, match string) chat.Event {
	return chat.Event{Kind: chat.EventFinish, Finish: f, Match: match}
}
func end() chat.Event {
	return chat.Event{Kind: chat.EventEnd, Usage: chat.Usage{Prompt: 9, Cached: 4, Output: 7, Reasoning: 2}}
}

// Whole streams, byte for byte, and the whole answers to the same events. Files are under testdata: NAME.sse and NAME.json.
func TestGoldenAnswers(t *testing.T) {
	failed := &api.Error{Kind: api.KindEngine, Message: "The engine failed.", RequestID: "req_1"}
	cases := []struct {
		name   string
		hide   bool
		events []chat.Event
		fail   *api.Error // in place of an end
	}{
		{name: "text", events: []chat.Event{start(), text("Hel"), text("lo \"👋\"\n"), finish(chat.FinishStop, ""), end()}},
		{name: "thinking", events: []chat.Event{start(), thought("hm"), thought("…"), text("a"), finish(chat.FinishStop, ""), end()}},
		{name: "hidden", hide: true, events: []chat.Event{start(), thought("hm"), thought("…"), text("a"), finish(chat.FinishStop, ""), end()}},
		{name: "tool", events: []chat.Event{start(), text("I look."), called(0, "f", ""), called(0, "", `{"a":`), called(0, "", ` "ü"}`), finish(chat.FinishToolCalls, ""), end()}},
		{name: "tools", events: []chat.Event{start(), called(0, "f", `{"a": 1}`), called(1, "g", ""), finish(chat.FinishToolCalls, ""), end()}},
		{name: "stop_sequence", events: []chat.Event{start(), text("ab"), finish(chat.FinishStop, "END"), end()}},
		{name: "max_tokens", events: []chat.Event{start(), called(0, "f", `{"a": "x`), finish(chat.FinishLength, ""), end()}},
		{name: "empty", events: []chat.Event{start(), finish(chat.FinishLength, ""), end()}},
		{name: "error", events: []chat.Event{start(), text("a")}, fail: failed},
	}
	for _, c := range cases {
		r := &api.Request{HideReasoning: c.hide}
		a := Messages{}.Answer(r, head())
		stream := a.Ping(a.Begin(nil))
		for i := range c.events {
			stream = a.Append(stream, c.events[i:i+1])
			if i == 1 {
				stream = a.Ping(stream)
			}
		}
		if c.fail != nil {
			golden(t, c.name+".sse", a.Fail(stream, c.fail))
			continue
		}
		golden(t, c.name+".sse", stream)
		whole := Messages{}.Answer(r, head())
		whole.Add(c.events)
		golden(t, c.name+".json", whole.Body())
	}
}

// golden compares with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSuffix(string(want), "\n") != strings.TrimSuffix(string(got), "\n") {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}
