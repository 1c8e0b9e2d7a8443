package parse

import (
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/internal/await"
)

// TestRecords reads every record at every cut, with marks that are spelled and with marks that are control tokens.
func TestRecords(t *testing.T) {
	count := map[string]int{}
	cuts := 0
	for _, c := range corpora() {
		count[c.tools] += len(c.records)
		for _, r := range c.records {
			for _, control := range []bool{false, true} {
				if control && r.marks == spelledMarks || !control && r.marks == controlMarks {
					continue
				}
				config := c.config(t, &r, control)
				answer := atoms(&config, r.answer)
				failed := false
				every(len(answer), func(at []int) {
					got, _ := read(config, answer, at...)
					if cuts++; !failed && !reflect.DeepEqual(got, r.want) {
						failed = true
						t.Errorf("%s, %s, control tokens %v: %q cut at %v:\n got %+v\nwant %+v", c.tools, r.name, control, r.answer, at, got, r.want)
					}
				})
			}
		}
	}
	for _, name := range ToolFormats() {
		if count[name] < 12 {
			t.Errorf("%s has %d records, want 12", name, count[name])
		}
	}
	for _, name := range ReasoningFormats() {
		if !slices.ContainsFunc(corpora(), func(c corpus) bool { return c.reasoning == name }) {
			t.Errorf("thoughts of %s have no records", name)
		}
	}
	t.Logf("%v records, %d ways to cut them", count, cuts)
}

// TestGoroutines closes parsers wherever they are, and looks for what they leave.
func TestGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	var open []*Parser
	for _, c := range corpora() {
		for _, r := range c.records {
			config := c.config(t, &r, false)
			for at := range len(r.answer) {
				p := New(config)
				p.Push(r.answer[:at])
				open = append(open, p)
			}
		}
	}
	if during := runtime.NumGoroutine(); during < before+len(open)/2 {
		t.Errorf("%d goroutines for %d parsers: this test sees none of theirs", during-before, len(open))
	}
	for i, p := range open {
		if i%2 == 0 {
			p.End(false)
		}
		p.Close()
		p.Close()
	}
	await.Goroutines(t, before)
}

// A closed parser takes nothing and says nothing.
func TestClosed(t *testing.T) {
	p := New(Config{Tools: FindTools("hermes")})
	p.Push("a <tool_call>{")
	p.Close()
	if events := p.Push("b"); len(events) > 0 {
		t.Errorf("a closed parser gives %+v", events)
	}
}

func TestThinking(t *testing.T) {
	config := Config{Reasoning: FindReasoning("think"), Thinking: true}
	p := New(config)
	defer p.Close()
	cases := []struct {
		push string
		want bool // the next token belongs to thoughts
	}{{"", true}, {"a", true}, {"</thi", true}, {"nk>", false}, {"b", false}}
	for _, c := range cases {
		if p.Push(c.push); p.Thinking() != c.want {
			t.Errorf("behind %q: thinking %v, want %v", c.push, p.Thinking(), c.want)
		}
	}
}

// Where any tool may be called, a call still needs a name.
func TestAnyTool(t *testing.T) {
	each(t, func(t *testing.T, w written, config Config) {
		config.Declared, config.AnyTool = nil, true
		expect(t, config, w.call("missing", "a"), call(0, "missing", `{"x": "a"}`))
		answer := w.call("", "a")
		expect(t, config, answer, text(answer))
	})
}
