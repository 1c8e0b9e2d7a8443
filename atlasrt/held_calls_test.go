package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
	"github.com/atlas-inference/atlas/internal/validate"
)

var callAnswers = flag.Int("calls", 40, "answers of TestCallsFollowTheirTools")

// heldTools are tools as products for agents have them.
type heldTools struct {
	list   []json.RawMessage // as chats have them
	names  []string
	judges map[string]*validate.Schema // of arguments, by name
}

func readHeldTools(t *testing.T) *heldTools {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "structured", "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	tools := &heldTools{judges: map[string]*validate.Schema{}}
	if err := json.Unmarshal(text, &tools.list); err != nil {
		t.Fatal(err)
	}
	for _, one := range tools.list {
		var tool struct {
			Function struct {
				Name       string
				Parameters json.RawMessage
			}
		}
		if err := json.Unmarshal(one, &tool); err != nil {
			t.Fatal(err)
		}
		name := tool.Function.Name
		tools.names = append(tools.names, name)
		if tools.judges[name], err = validate.Compile(string(tool.Function.Parameters)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return tools
}

// A small model that must call tools calls those that there are, with arguments that their schemas allow, in the formats of all families:
// another validator judges them.
func TestCallsFollowTheirTools(t *testing.T) {
	tools := readHeldTools(t)
	formats := parse.ToolFormats()
	withHeld(t, func(t *testing.T, m *heldModel) {
		var servers []*server.Server
		for _, format := range formats {
			servers = append(servers, m.serve(t, format, grammar.Compact))
		}
		closing, called := m.closing(), map[string]int{}
		for _, a := range untilEnded(t, *callAnswers, func(i int) *heldRequest {
			r := tools.request(i)
			r.body["logit_bias"] = closing
			r.name, r.server = formats[i%len(formats)], servers[i%len(servers)]
			return r
		}) {
			for _, c := range a.Choices[0].Message.Calls {
				called[c.Function.Name]++
			}
		}
		t.Logf("called were %v", called)
		if *callAnswers >= 10*len(tools.names) && len(called) < len(tools.names) {
			t.Errorf("%d of %d tools were called", len(called), len(tools.names))
		}
	})
}

// request asks for calls: of any tool or of one of five, of one or several, more or less wild, as the number says.
func (tools *heldTools) request(i int) *heldRequest {
	choice := any("required")
	some := tools.names
	if i/8%2 == 1 {
		some = tools.names[i/16%4*5:][:5]
		var allowed []any
		for _, name := range some {
			allowed = append(allowed, map[string]any{"type": "function", "function": map[string]any{"name": name}})
		}
		choice = map[string]any{"type": "allowed_tools", "allowed_tools": map[string]any{"mode": "required", "tools": allowed}}
	}
	question := "Please use " + some[i/8%len(some)] + "."
	return &heldRequest{
		path: "/v1/chat/completions",
		body: map[string]any{
			"messages": []any{map[string]any{"role": "user", "content": question}}, "max_tokens": 140, "seed": i, "temperature": float64(i%5) / 4,
			"tools": tools.list, "tool_choice": choice, "parallel_tool_calls": i%3 == 0,
		},
		judge: func(a *heldAnswer) error { return tools.judge(a, i%3 == 0) },
	}
}

// judge is an error where an answer is anything but calls of tools as they must be.
func (tools *heldTools) judge(a *heldAnswer, several bool) error {
	c := a.Choices[0]
	switch n := len(c.Message.Calls); {
	case c.Finish != "tool_calls":
		return fmt.Errorf("it finishes by %s, want tool_calls", c.Finish)
	case c.Message.Content != "":
		return fmt.Errorf("it has the text %q", c.Message.Content)
	case n == 0 || n > 1 && !several:
		return fmt.Errorf("it has %d calls", n)
	}
	for _, call := range c.Message.Calls {
		judges := tools.judges[call.Function.Name]
		if judges == nil {
			return errors.New("it calls no tool of the list")
		}
		if err := judges.Check(call.Function.Arguments); err != nil {
			return fmt.Errorf("arguments of %s: %w", call.Function.Name, err)
		}
	}
	return nil
}
