package main

import (
	"fmt"
	"os"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// tools reads the file that --tools names; nil without one.
func (c *parseCommand) tools() ([]chat.Tool, error) {
	if c.Tools == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Tools)
	if err != nil {
		return nil, fmt.Errorf("--tools: %w", err)
	}
	tree, err := jsontree.Decode(text, jsontree.Limits{})
	if err != nil {
		return nil, fmt.Errorf("--tools: %s: %w", c.Tools, err)
	}
	list, ok := tree.(jsontree.Array)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("--tools: %s must hold a JSON array of one tool or more", c.Tools)
	}
	tools := make([]chat.Tool, len(list))
	for i, value := range list {
		if tools[i], ok = readTool(value); !ok {
			return nil, fmt.Errorf(`--tools: %s: tool %d has no name (write {"type": "function", "function": {"name": ..., "parameters": ...}}, or {"name": ..., "input_schema": ...})`, c.Tools, i)
		}
	}
	return tools, nil
}

// readTool reads a tool as one of the APIs has it.
func readTool(value jsontree.Value) (chat.Tool, bool) {
	o, ok := value.(*jsontree.Object)
	if !ok {
		return chat.Tool{}, false
	}
	if function, ok := o.Get("function"); ok {
		return readTool(function)
	}
	var t chat.Tool
	name, _ := o.Get("name")
	text, ok := name.(jsontree.String)
	t.Name = string(text)
	for _, key := range []string{"parameters", "input_schema"} {
		if schema, ok := o.Get(key); ok {
			t.Parameters = schema
		}
	}
	return t, ok && t.Name != ""
}
