package parse

import (
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// record is what a model wrote and what must be found in it. Marks between ⟦ and ⟧ are spelled by the model, also where the tokenizer
// has them as control tokens.
type record struct {
	name     string
	answer   string
	want     []chat.Event
	thinking bool // the prompt ended within thoughts
	oneCall  bool
	marks    marking
}

// marking says whether the marks of a record are control tokens of its tokenizer. Most mean the same both ways.
type marking uint8

const (
	anyMarks marking = iota
	spelledMarks
	controlMarks
)

func text(s string) chat.Event    { return chat.Event{Kind: chat.EventText, Text: s} }
func thought(s string) chat.Event { return chat.Event{Kind: chat.EventReasoning, Text: s} }
func call(index int, name, arguments string) chat.Event {
	return chat.Event{Kind: chat.EventToolCall, Call: chat.ToolCallDelta{Index: index, Name: name, Arguments: arguments}}
}

// corpus is the records of a way to write something, and the parser for them.
type corpus struct {
	reasoning string
	tools     string
	records   []record
}

// corpora are the records of all formats.
func corpora() []corpus {
	return []corpus{
		{"think", "hermes", hermesRecords()},
		{"think", "qwen3_coder", qwenRecords()},
		{"think", "nemotron", qwenRecords()},
		{"think", "minimax", minimaxRecords()},
		{"mistral", "mistral", mistralRecords()},
		{"gemma", "gemma4", gemmaRecords()},
		{"think", "llama3_json", llamaRecords()},
		{"think", "json", jsonRecords()},
		{"think", "hermes", thinkRecords()},
		{"mistral", "mistral", mistralThoughtRecords()},
		{"gemma", "gemma4", gemmaThoughtRecords()},
	}
}

// declared are the tools that models in these tests may call.
func declared(t testing.TB) []chat.Tool {
	schema, err := jsontree.Decode([]byte(`{
		"type": "object",
		"$defs": {"place": {"type": "object"}, "self": {"anyOf": [{"$ref": "#/$defs/self"}, {"type": "integer"}]}},
		"properties": {
			"text": {"type": "string"}, "whole": {"type": "integer"}, "number": {"type": "number"}, "flag": {"type": "boolean"},
			"list": {"type": "array"}, "object": {"type": "object"}, "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
			"name": {"type": ["string", "null"]}, "place": {"$ref": "#/$defs/place"}, "self": {"$ref": "#/$defs/self"},
			"either": {"type": ["string", "integer"]}, "choice": {"enum": [1, 2, "three"]}, "any": {}
		}}`), jsontree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return []chat.Tool{{Name: "f"}, {Name: "g"}, {Name: "typed", Parameters: schema}}
}

func (c *corpus) config(t testing.TB, r *record, control bool) Config {
	config := Config{
		Reasoning: FindReasoning(c.reasoning), Tools: FindTools(c.tools), Declared: declared(t), Thinking: r.thinking, OneCall: r.oneCall,
	}
	if control {
		config.Control = controlsOf(&config)
	}
	return config
}

// controlsOf makes all marks of a configuration control tokens.
func controlsOf(c *Config) func(string) bool {
	marks := c.marks()
	return func(text string) bool { return slices.Contains(marks, text) }
}

// atom is what no cut divides: a byte of text, or a control token.
type atom struct {
	text    string
	control bool
}

// atoms are those of an answer to a parser.
func atoms(c *Config, answer string) (all []atom) {
	spelled := false
	controls := c.Controls()
	for answer != "" {
		if rest, ok := strings.CutPrefix(answer, "⟦"); ok {
			spelled, answer = true, rest
			continue
		}
		if rest, ok := strings.CutPrefix(answer, "⟧"); ok {
			spelled, answer = false, rest
			continue
		}
		i := slices.IndexFunc(controls, func(mark string) bool { return strings.HasPrefix(answer, mark) })
		if i >= 0 && !spelled {
			all, answer = append(all, atom{controls[i], true}), answer[len(controls[i]):]
			continue
		}
		all, answer = append(all, atom{answer[:1], false}), answer[1:]
	}
	return all
}

// listener joins events that go on with one another.
type listener struct{ events []chat.Event }

func (l *listener) hear(events []chat.Event) {
	for _, e := range events {
		last := len(l.events) - 1
		if last < 0 || l.events[last].Kind != e.Kind || e.Call.Name != "" {
			l.events = append(l.events, e)
			continue
		}
		l.events[last].Text += e.Text
		l.events[last].Call.Arguments += e.Call.Arguments
	}
}

// give pushes a piece of an answer.
func (l *listener) give(p *Parser, piece []atom) {
	var b strings.Builder
	flush := func() {
		l.hear(p.Push(b.String()))
		b.Reset()
	}
	for _, a := range piece {
		if a.control {
			flush()
			l.hear(p.Control(a.text))
			continue
		}
		b.WriteString(a.text)
	}
	flush()
}

// read gives the events of an answer that is cut at some places, and the steps that were taken.
func read(c Config, answer []atom, cuts ...int) (events []chat.Event, steps int) {
	p := New(c)
	defer p.Close()
	l := listener{}
	from := 0
	for _, to := range append(cuts, len(answer)) {
		l.give(p, answer[from:to])
		from = to
	}
	l.hear(p.End(false))
	return l.events, p.Steps()
}

// every calls visit for the ways to cut an answer: in pieces of each size, in two at each place, and in three if it is short.
func every(length int, visit func(cuts []int)) {
	for size := 1; size <= length; size++ {
		var cuts []int
		for at := size; at < length; at += size {
			cuts = append(cuts, at)
		}
		visit(cuts)
	}
	for at := 1; at < length; at++ {
		visit([]int{at})
		for second := at + 1; length <= 64 && second < length; second++ {
			visit([]int{at, second})
		}
	}
}
