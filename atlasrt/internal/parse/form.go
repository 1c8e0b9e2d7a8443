package parse

import (
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Choice says which calls an answer has.
type Choice struct {
	Required bool   // one or several, and nothing beside them; else calls and text, as the model likes
	Name     string // one, of this function, and nothing beside it; "": of any
	Single   bool   // no more than one
}

// writing is a way in which templates write calls.
type writing struct {
	call     func(name string, arguments grammar.Spec) grammar.Spec
	joint    string                                // between calls that lie together
	around   func(calls grammar.Spec) grammar.Spec // all calls of an answer; nil: nothing is
	behind   string                                // may stand behind the last call
	notation grammar.Notation                      // of arguments
	free     grammar.Notation                      // of arguments that are held to no schema
}

// Form is what an answer must be in which tools are called, byte for byte as the model's template writes it. Only the given tools can be
// called. Arguments of strict tools are held to their schemas. So are those of others where there must be a call, as far as their schemas
// can be held (grammar.Note); where there need not be one, they are any object.
func (t *Tools) Form(tools []chat.Tool, c Choice) grammar.Spec {
	if c.Name != "" {
		tools = slices.DeleteFunc(slices.Clone(tools), func(tool chat.Tool) bool { return tool.Name != c.Name })
		c.Required, c.Single = true, true
	}
	var ways []grammar.Spec
	for i := range t.writings {
		ways = append(ways, t.writings[i].form(tools, c))
	}
	calls := either(ways...)
	if c.Required {
		return calls
	}
	text := grammar.Spec{Kind: grammar.Free, Words: t.opens}
	if t.bare {
		begun, more := text, text
		begun.Not, more.Not = bareBeginning(tools), `[ \t\r\n]*[,;]?[ \t\r\n]*[{\[]`
		return either(begun, sequence(calls, more))
	}
	most := grammar.Unbounded
	if c.Single {
		most = 1
	}
	return sequence(text, grammar.Spec{Kind: grammar.Repeat, Parts: []grammar.Spec{sequence(calls, text)}, Max: most})
}

// form is what calls are in one way of writing. Where text may stand between calls, and they need nothing around them, it is one of them.
func (w *writing) form(tools []chat.Tool, c Choice) grammar.Spec {
	var one []grammar.Spec
	for i := range tools {
		one = append(one, w.call(tools[i].Name, w.arguments(&tools[i], c)))
	}
	calls := either(one...)
	if !c.Single && (c.Required || w.around != nil) {
		more := grammar.Spec{Kind: grammar.Repeat, Parts: []grammar.Spec{sequence(literal(w.joint), calls)}, Max: grammar.Unbounded}
		calls = sequence(calls, more)
	}
	if w.around != nil {
		calls = w.around(calls)
	}
	if c.Required && w.behind != "" {
		calls = sequence(calls, optional(literal(w.behind)))
	}
	return calls
}

// arguments is what the arguments of a call of a tool must be.
func (w *writing) arguments(tool *chat.Tool, c Choice) grammar.Spec {
	s := grammar.Spec{Kind: grammar.Schema, Name: "the parameters of the tool " + tool.Name, Text: `{"type":"object"}`, Notation: w.notation}
	switch {
	case !tool.Strict && !c.Required:
		s.Notation = w.free
	case tool.Parameters == nil:
		s.Text = `{"type":"object","properties":{},"additionalProperties":false}`
	default:
		s.Text, s.Loose = string(jsontree.Append(nil, objects(tool.Parameters))), !tool.Strict
	}
	return s
}

// objects is a schema of parameters, which are an object also where it does not say so or leaves a choice.
func objects(schema jsontree.Value) jsontree.Value {
	given, ok := schema.(*jsontree.Object)
	if !ok || given == nil {
		return schema
	}
	kind, typed := given.Get("type")
	if _, choice := kind.(jsontree.Array); typed && !choice {
		return schema
	}
	o := jsontree.NewObject()
	for key, value := range given.All() {
		o.Set(key, value)
	}
	o.Set("type", jsontree.String("object"))
	return o
}

// bareBeginning is a regular expression of how an answer begins that is read as calls of tools, see bare.
func bareBeginning(tools []chat.Tool) string {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = regexp.QuoteMeta(escaped(tools[i].Name))
	}
	const space = `[ \t\r\n]*`
	return space + `\[?` + space + `\{` + space + `"(?:[^"\\]*\\|(?:type|id|function|arguments|parameters)"|name"` + space + `:` + space +
		`"(?:[^"\\]*\\|(?:` + strings.Join(names, "|") + `)"))`
}

func literal(text string) grammar.Spec { return grammar.Spec{Kind: grammar.Literal, Text: text} }

func control(text string) grammar.Spec { return grammar.Spec{Kind: grammar.Control, Text: text} }

func sequence(parts ...grammar.Spec) grammar.Spec {
	return grammar.Spec{Kind: grammar.Sequence, Parts: parts}
}

func optional(part grammar.Spec) grammar.Spec {
	return grammar.Spec{Kind: grammar.Repeat, Parts: []grammar.Spec{part}, Max: 1}
}

// either is one of some parts; where there is but one it is that one.
func either(parts ...grammar.Spec) grammar.Spec {
	if len(parts) == 1 {
		return parts[0]
	}
	return grammar.Spec{Kind: grammar.Either, Parts: parts}
}
