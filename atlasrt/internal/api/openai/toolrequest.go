package openai

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// tools reads what the model may call: all that the request declares, but for what its choice leaves out. Those are not shown to
// the model either. Where one tool must be called the model sees all.
func (f fields) tools(limits api.Limits) ([]chat.Tool, parse.Choice) {
	tools := api.NewTools(limits)
	for _, tool := range f.Objects("tools", f.List("tools")) {
		kind := "function"
		if tool.Text("type", &kind); kind != "function" {
			tool.Fail(api.Unsupported(tool.Path("type"), "%s is %q; this server takes tools of type function only, leave out others.", tool.Path("type"), api.Clip(kind, 40)))
		}
		if function := tool.Object("function"); function != nil {
			declare(function, tools, tool.Source())
		} else {
			tool.Invalid("function", "is required")
		}
	}
	if f.older() && len(tools.List) > 0 {
		f.Invalid("functions", "and tools are both given: functions is the older name, leave it out")
	}
	for _, function := range f.Objects("functions", f.List("functions")) {
		definition := jsontree.NewObject()
		definition.Set("type", jsontree.String("function"))
		definition.Set("function", function.Source())
		declare(function, tools, definition)
	}
	choice := parse.Choice{Single: f.oneCall()}
	f.choose("tool_choice", tools, &choice)
	f.choose("function_call", tools, &choice)
	return tools.List, choice
}

// older tells whether the client knows only functions, which came before tools.
func (f fields) older() bool { return len(f.List("functions")) > 0 }

// oneCall tells whether an answer has one call at most.
func (f fields) oneCall() bool {
	parallel := true
	f.Bool("parallel_tool_calls", &parallel)
	return !parallel || f.older()
}

// declare reads a function, which templates see as its definition.
func declare(f *api.Fields, tools *api.Tools, definition *jsontree.Object) {
	t := chat.Tool{Definition: definition}
	f.Text("name", &t.Name)
	f.Text("description", &t.Description)
	if d := f.Dict("parameters"); d != nil {
		t.Parameters = d
	}
	f.Bool("strict", &t.Strict)
	tools.Add(f, "name", t)
}

// choose reads a choice among tools, and keeps those that the model may call.
func (f fields) choose(field string, tools *api.Tools, to *parse.Choice) {
	switch choice := f.Take(field).(type) {
	case nil:
	case jsontree.String:
		f.word(field, string(choice), tools, to)
	case *jsontree.Object:
		o := f.Inner(choice, field)
		if field == "function_call" {
			to.Name = Known(o, tools)
			return
		}
		kind := ""
		o.Text("type", &kind)
		inner := o
		if kind == "function" || kind == "allowed_tools" {
			if inner = o.Object(kind); inner == nil {
				o.Invalid(kind, "is required")
				return
			}
		}
		switch kind {
		case "function":
			to.Name = Known(inner, tools)
		case "allowed_tools":
			to.Required = Allowed(inner, tools)
		default:
			f.word(field, kind, tools, to)
		}
	default:
		f.WrongKind(field, "a string or an object", choice)
	}
}

// word reads a choice that names no tool.
func (f fields) word(field, kind string, tools *api.Tools, to *parse.Choice) {
	switch {
	case kind == "auto":
	case kind == "none":
		tools.Keep(nil)
	case kind != "required":
		f.Invalid(field, "must be none, auto or required, or name a function, not %q", api.Clip(kind, 40))
	case len(tools.List) == 0:
		f.Invalid(field, "is required, but there are no tools to call")
	default:
		to.Required = true
	}
}

// Known reads the name of a function that must be among tools.
func Known(f *api.Fields, tools *api.Tools) string {
	name := f.Required("name")
	if !tools.Has(name) {
		f.Invalid("name", "is %q, which is none of the tools", api.Clip(name, 140))
	}
	return name
}

// Allowed reads which tools are left of those that there are, in the form of either API, and whether one must be called. Tools that are no
// functions are left out.
func Allowed(f *api.Fields, tools *api.Tools) (required bool) {
	mode := "auto"
	f.Enum("mode", &mode, "auto", "required")
	items := f.List("tools")
	if len(items) == 0 {
		f.Invalid("tools", "must name at least one tool")
	}
	names := map[string]bool{}
	for _, tool := range f.Objects("tools", items) {
		kind := "function"
		if tool.Text("type", &kind); kind != "function" {
			continue
		}
		if function := tool.Object("function"); function != nil {
			tool = function
		}
		names[Known(tool, tools)] = true
	}
	tools.Keep(names)
	return mode == "required"
}
