package responses

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// tools reads the functions that the model may call, and gives them as answers repeat them. Tools of all other types are run by OpenAI or
// by certain clients; agents send them always, so that they are left out and counted.
func (r *Request) tools(f *api.Fields, limits api.Limits) jsontree.Array {
	gathered, shown := api.NewTools(limits), jsontree.Array{}
	for _, t := range f.Objects("tools", f.List("tools")) {
		if t.Required("type") == "function" {
			shown = append(shown, function(t, gathered))
		} else {
			r.Skipped++
		}
	}
	parallel := true
	f.Bool("parallel_tool_calls", &parallel)
	r.Options.OneCall = !parallel
	r.Options.Calls = choose(f, gathered)
	r.Options.Calls.Single = !parallel
	r.Chat.Tools = gathered.List
	return shown
}

// function reads a tool, and gives it as answers repeat it.
func function(t *api.Fields, to *api.Tools) *jsontree.Object {
	var tool chat.Tool
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
	t.Bool("strict", &tool.Strict)
	o.Set("strict", jsontree.Bool(tool.Strict))
	to.Add(t, "name", tool)
	return o
}

// choose reads which calls an answer has, and keeps the tools that the model gets to see.
func choose(f *api.Fields, tools *api.Tools) (calls parse.Choice) {
	switch v := f.Take("tool_choice").(type) {
	case nil:
	case jsontree.String:
		switch v {
		case "auto":
		case "none":
			tools.Keep(nil)
		case "required":
			calls.Required = true
		default:
			f.Invalid("tool_choice", "must be none, auto, required or an object")
		}
	case *jsontree.Object:
		c := f.Inner(v, "tool_choice")
		switch kind := c.Required("type"); kind {
		case "allowed_tools":
			calls.Required = openai.Allowed(c, tools)
		case "function":
			calls.Name = openai.Known(c, tools)
		default:
			c.Fail(api.Unsupported(c.Path("type"), "%s is %q; this server calls tools of type function only, so that it must be function or allowed_tools.", c.Path("type"), api.Clip(kind, 40)))
		}
	default:
		f.WrongKind("tool_choice", "a string or an object", v)
	}
	if calls.Required && len(tools.List) == 0 {
		f.Invalid("tool_choice", "asks for a call, but there is no function to call")
	}
	return calls
}
