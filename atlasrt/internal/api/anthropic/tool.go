package anthropic

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// toolUse reads the tools, and which of them the model may call. Where it may call none it does not get to see them.
func (d *decoder) toolUse() {
	tools := d.tools()
	f := d.Object("tool_choice")
	if f == nil {
		d.request.Chat.Tools = tools.List
		return
	}
	var kind string
	f.Enum("type", &kind, "auto", "none", "any", "tool")
	o := &d.request.Options
	f.Bool("disable_parallel_tool_use", &o.OneCall)
	d.request.Chat.Tools = tools.List
	o.Calls = parse.Choice{Required: kind == "any", Single: o.OneCall}
	switch kind {
	case "":
		f.Invalid("type", "is required")
	case "none":
		d.request.Chat.Tools = nil
	case "any":
		if len(tools.List) == 0 {
			f.Invalid("type", "is any, but there is no tool to call")
		}
	case "tool":
		if o.Calls.Name = f.Required("name"); !tools.Has(o.Calls.Name) {
			f.Invalid("name", "is %.140q, which none of the tools is called", o.Calls.Name)
		}
	}
}

// tools reads the tools that the client runs after a schema of its own. Others have a type that only models of this API's
// vendor know; they are left out, and counted as fields that are not known.
func (d *decoder) tools() *api.Tools {
	tools := api.NewTools(d.limits)
	for _, f := range d.Objects("tools", d.List("tools")) {
		kind := "custom"
		if f.Text("type", &kind); kind != "custom" {
			d.request.Unknown++
			continue
		}
		var tool chat.Tool
		f.Text("name", &tool.Name)
		f.Text("description", &tool.Description)
		tool.Parameters = schema(f)
		f.Bool("strict", &tool.Strict)
		tools.Add(f, "name", tool)
	}
	return tools
}

// schema reads the schema of a tool's input, which is of an object even where it does not say so.
func schema(f *api.Fields) jsontree.Value {
	const field = "input_schema"
	given := f.Dict(field)
	if given == nil {
		f.Invalid(field, "is required")
		return nil
	}
	kind, ok := given.Get("type")
	if ok && api.IsText("object")(kind) {
		return given
	}
	if _, null := kind.(jsontree.Null); ok && !null {
		f.Invalid(field, "must be of type object")
	}
	object := jsontree.NewObject()
	object.Set("type", jsontree.String("object"))
	for key, value := range given.All() {
		if key != "type" {
			object.Set(key, value)
		}
	}
	return object
}
