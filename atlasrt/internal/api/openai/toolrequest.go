package openai

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// tools reads what the model may call: all that the request declares, but for what its choice leaves out. Those are not shown to
// the model either.
func (f *fields) tools(limits api.Limits) []chat.Tool {
	tools := api.NewTools(limits)
	for i, item := range f.List("tools") {
		f.entry("tools", i, item, func(tool *fields, object *jsontree.Object) { tool.tool(tools, object) })
		if f.Err() != nil {
			return nil
		}
	}
	if f.older() && len(tools.List) > 0 {
		f.Invalid("functions", "and tools are both given: functions is the older name, leave it out")
	}
	for i, item := range f.List("functions") {
		f.entry("functions", i, item, func(function *fields, object *jsontree.Object) {
			definition := jsontree.NewObject()
			definition.Set("type", jsontree.String("function"))
			definition.Set("function", object)
			function.declare(tools, definition)
		})
		if f.Err() != nil {
			return nil
		}
	}
	return f.chosen("function_call", f.chosen("tool_choice", tools.List))
}

// older tells whether the client knows only functions, which came before tools.
func (f *fields) older() bool { return len(f.List("functions")) > 0 }

// oneCall tells whether an answer has one call at most.
func (f *fields) oneCall() bool {
	parallel := true
	f.Bool("parallel_tool_calls", &parallel)
	return !parallel || f.older()
}

// entry reads an entry of a list, which must be an object.
func (f *fields) entry(list string, i int, item jsontree.Value, read func(*fields, *jsontree.Object)) {
	name := fmt.Sprintf("%s[%d]", list, i)
	object, ok := item.(*jsontree.Object)
	if !ok {
		f.WrongKind(name, "an object", item)
		return
	}
	entry := f.inner(object, name)
	read(entry, object)
	f.Fail(entry.Err())
}

// tool reads one tool.
func (f *fields) tool(tools *api.Tools, object *jsontree.Object) {
	kind := "function"
	if f.Text("type", &kind); kind != "function" {
		f.Fail(api.Unsupported(f.Path("type"), "%s is %q; this server takes tools of type function only, leave out others.", f.Path("type"), api.Clip(kind, 40)))
		return
	}
	d := f.Dict("function")
	if d == nil {
		f.Invalid("function", "is required")
		return
	}
	function := f.inner(d, "function")
	function.declare(tools, object)
	f.Fail(function.Err())
}

// declare reads a function, which templates see as its definition.
func (f *fields) declare(tools *api.Tools, definition *jsontree.Object) {
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
	tools.Add(f.Fields, "name", t)
}

// chosen reads a choice among tools.
func (f *fields) chosen(field string, tools []chat.Tool) []chat.Tool {
	choice := f.Take(field)
	kind, text := choice.(jsontree.String)
	if object, ok := choice.(*jsontree.Object); ok {
		o := f.inner(object, field)
		if field == "function_call" {
			f.named(o, field, tools)
			return tools
		}
		name := ""
		o.Text("type", &name)
		f.Fail(o.Err())
		switch kind = jsontree.String(name); kind {
		case "function", "custom":
			if d := o.Dict(name); d != nil {
				f.named(o.inner(d, name), field, tools)
			} else {
				o.Invalid(name, "is required")
			}
			f.Fail(o.Err())
			return tools
		case "allowed_tools":
			return f.allowed(o, tools)
		}
	} else if choice != nil && !text {
		f.WrongKind(field, "a string or an object", choice)
	}
	switch {
	case choice == nil, kind == "auto":
	case kind == "none":
		return nil
	case kind != "required":
		f.Invalid(field, "must be none, auto or required, or name a function, not %q", api.Clip(string(kind), 40))
	case len(tools) == 0:
		f.Invalid(field, "is required, but there are no tools to call")
	default:
		f.Fail(api.NeedsGrammar(f.Path(field), f.Path(field)+" of required"))
	}
	return tools
}

// named refuses a choice of one function: whether the model would call it is up to the model.
func (f *fields) named(function *fields, field string, tools []chat.Tool) {
	if name := function.known(tools); name != "" {
		f.Fail(api.NeedsGrammar(f.Path(field), f.Path(field)+" of one function"))
	}
	f.Fail(function.Err())
}

// known reads the name of a function that must be among tools.
func (f *fields) known(tools []chat.Tool) (name string) {
	switch {
	case !f.Text("name", &name):
		f.Invalid("name", "is required")
	case !slices.ContainsFunc(tools, func(t chat.Tool) bool { return t.Name == name }):
		f.Invalid("name", "is %q, which is none of the tools", api.Clip(name, 140))
	default:
		return name
	}
	return ""
}

// allowed reads a choice that leaves some of the tools.
func (f *fields) allowed(choice *fields, tools []chat.Tool) []chat.Tool {
	d := choice.Dict("allowed_tools")
	if d == nil {
		choice.Invalid("allowed_tools", "is required")
		f.Fail(choice.Err())
		return nil
	}
	o := choice.inner(d, "allowed_tools")
	mode := "auto"
	if o.Enum("mode", &mode, "auto", "required"); mode == "required" {
		o.Fail(api.NeedsGrammar(o.Path("mode"), o.Path("mode")+" of required"))
	}
	items := o.List("tools")
	if len(items) == 0 {
		o.Invalid("tools", "must name at least one tool")
	}
	names := map[string]bool{}
	for i, item := range items {
		o.entry("tools", i, item, func(tool *fields, _ *jsontree.Object) {
			if d := tool.Dict("function"); d != nil {
				function := tool.inner(d, "function")
				names[function.known(tools)] = true
				tool.Fail(function.Err())
				return
			}
			names[tool.known(tools)] = true
		})
		if o.Err() != nil {
			break
		}
	}
	f.Fail(o.Err())
	return slices.DeleteFunc(tools, func(t chat.Tool) bool { return !names[t.Name] })
}
