package responses

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// place is the path of an entry of a list.
func place(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// tools reads the functions that the model may call, and gives them as answers repeat them. Tools of all other types are run by OpenAI or
// by certain clients; agents send them always, so that they are left out and counted.
func (r *Request) tools(f *api.Fields, limits api.Limits) jsontree.Array {
	gathered, shown := api.NewTools(limits), jsontree.Array{}
	for i, item := range f.List("tools") {
		name := place("tools", i)
		object, ok := item.(*jsontree.Object)
		if !ok {
			f.WrongKind(name, "an object", item)
			break
		}
		t, kind := f.Inner(object, name), ""
		if !t.Text("type", &kind) {
			t.Invalid("type", "is required")
		}
		if kind == "function" {
			shown = append(shown, function(t, gathered))
		} else {
			r.Skipped++
		}
		if f.Fail(t.Err()); f.Err() != nil {
			break
		}
	}
	parallel := true
	f.Bool("parallel_tool_calls", &parallel)
	r.Options.OneCall = !parallel
	r.Chat.Tools = choose(f, gathered.List)
	return shown
}

// function reads a tool, and gives it as answers repeat it.
func function(t *api.Fields, to *api.Tools) *jsontree.Object {
	var tool chat.Tool
	strict := false
	t.Text("name", &tool.Name)
	t.Text("description", &tool.Description)
	o := jsontree.NewObject()
	o.Set("type", jsontree.String("function"))
	o.Set("name", jsontree.String(tool.Name))
	o.Set("description", jsontree.String(tool.Description))
	o.Set("parameters", jsontree.Null{})
	if d := t.Dict("parameters"); d != nil {
		tool.Parameters = d
		o.Set("parameters", d)
	}
	o.Set("strict", jsontree.Bool(false))
	if t.Bool("strict", &strict); strict {
		t.Fail(api.NeedsGrammar(t.Path("strict"), "A strict function"))
	}
	to.Add(t, "name", tool)
	return o
}

// choose reads tool_choice, and gives the tools that the model gets to see.
func choose(f *api.Fields, tools []chat.Tool) []chat.Tool {
	switch v := f.Take("tool_choice").(type) {
	case nil:
	case jsontree.String:
		switch v {
		case "auto":
		case "none":
			return nil
		case "required":
			f.Fail(api.NeedsGrammar("tool_choice", "A required call"))
		default:
			f.Invalid("tool_choice", "must be none, auto, required or an object")
		}
	case *jsontree.Object:
		c, kind := f.Inner(v, "tool_choice"), ""
		c.Text("type", &kind)
		switch kind {
		case "allowed_tools":
			tools = allowed(c, tools)
		case "":
			c.Invalid("type", "is required")
		case "function":
			known(c, tools)
			c.Fail(api.NeedsGrammar("tool_choice", "The call of a certain tool"))
		default:
			c.Fail(api.NeedsGrammar("tool_choice", "The call of a certain tool"))
		}
		f.Fail(c.Err())
	default:
		f.WrongKind("tool_choice", "a string or an object", v)
	}
	return tools
}

// allowed keeps the tools that tool_choice lists.
func allowed(c *api.Fields, tools []chat.Tool) []chat.Tool {
	mode := "auto"
	if c.Enum("mode", &mode, "auto", "required"); mode != "auto" {
		c.Fail(api.NeedsGrammar(c.Path("mode"), "A required call"))
	}
	names, items := map[string]bool{}, c.List("tools")
	if len(items) == 0 {
		c.Invalid("tools", "must name at least one tool")
	}
	for i, item := range items {
		object, ok := item.(*jsontree.Object)
		if !ok {
			c.WrongKind(place("tools", i), "an object", item)
			return nil
		}
		t, kind := c.Inner(object, place("tools", i)), ""
		if t.Text("type", &kind); kind == "function" {
			names[known(t, tools)] = true
		}
		c.Fail(t.Err())
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t chat.Tool) bool { return !names[t.Name] })
}

// known reads the name of a function that must be among tools.
func known(f *api.Fields, tools []chat.Tool) (name string) {
	if f.Text("name", &name); !slices.ContainsFunc(tools, func(t chat.Tool) bool { return t.Name == name }) {
		f.Invalid("name", "is %q, which is none of the functions in tools", api.Clip(name, 64))
	}
	return name
}
