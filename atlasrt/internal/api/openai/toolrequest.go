package openai

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// tools reads what the model may call: all that the request declares, but for what its choice leaves out. Those are not shown to
// the model either.
func (f fields) tools(limits api.Limits) []chat.Tool {
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
	f.choose("tool_choice", tools)
	f.choose("function_call", tools)
	return tools.List
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
	strict := false
	if f.Bool("strict", &strict); strict {
		f.Fail(api.NeedsGrammar(f.Path("strict"), f.Path("strict")+" of true"))
	}
	tools.Add(f, "name", t)
}

// choose reads a choice among tools, and keeps those that the model may call.
func (f fields) choose(field string, tools *api.Tools) {
	switch choice := f.Take(field).(type) {
	case nil:
	case jsontree.String:
		f.word(field, string(choice), tools)
	case *jsontree.Object:
		o := f.Inner(choice, field)
		if field == "function_call" {
			f.one(field, o, tools)
			return
		}
		kind := ""
		switch o.Text("type", &kind); kind {
		case "function", "custom":
			if function := o.Object(kind); function != nil {
				f.one(field, function, tools)
			} else {
				o.Invalid(kind, "is required")
			}
		case "allowed_tools":
			if allowed := o.Object(kind); allowed != nil {
				if Allowed(allowed, tools) {
					allowed.Fail(api.NeedsGrammar(allowed.Path("mode"), allowed.Path("mode")+" of required"))
				}
			} else {
				o.Invalid(kind, "is required")
			}
		default:
			f.word(field, kind, tools)
		}
	default:
		f.WrongKind(field, "a string or an object", choice)
	}
}

// word reads a choice that names no tool.
func (f fields) word(field, kind string, tools *api.Tools) {
	switch {
	case kind == "auto":
	case kind == "none":
		tools.Keep(nil)
	case kind != "required":
		f.Invalid(field, "must be none, auto or required, or name a function, not %q", api.Clip(kind, 40))
	case len(tools.List) == 0:
		f.Invalid(field, "is required, but there are no tools to call")
	default:
		f.Fail(api.NeedsGrammar(f.Path(field), f.Path(field)+" of required"))
	}
}

// one refuses a choice of one function: whether the model would call it is up to the model.
func (f fields) one(field string, function *api.Fields, tools *api.Tools) {
	Known(function, tools)
	f.Fail(api.NeedsGrammar(f.Path(field), f.Path(field)+" of one function"))
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
