package responses

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
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
	choose(f, gathered)
	r.Chat.Tools = gathered.List
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

// choose reads tool_choice, and keeps the tools that the model gets to see.
func choose(f *api.Fields, tools *api.Tools) {
	switch v := f.Take("tool_choice").(type) {
	case nil:
	case jsontree.String:
		switch v {
		case "auto":
		case "none":
			tools.Keep(nil)
		case "required":
			f.Fail(api.NeedsGrammar("tool_choice", "A required call"))
		default:
			f.Invalid("tool_choice", "must be none, auto, required or an object")
		}
	case *jsontree.Object:
		c := f.Inner(v, "tool_choice")
		switch c.Required("type") {
		case "allowed_tools":
			openai.Allowed(c, tools)
		case "function":
			openai.Known(c, tools)
			fallthrough
		default:
			c.Fail(api.NeedsGrammar("tool_choice", "The call of a certain tool"))
		}
	default:
		f.WrongKind("tool_choice", "a string or an object", v)
	}
}
