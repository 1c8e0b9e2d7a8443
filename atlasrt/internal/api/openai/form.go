package openai

import (
	"regexp"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// formFields are the fields of either route that say what the text of an answer must be: OpenAI's, and those of vLLM, SGLang and llama.cpp.
var formFields = []string{
	"response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "json_schema", "grammar", "regex", "ebnf",
}

// form reads what the text of an answer must be; nil: anything.
func (f fields) form() *grammar.Spec {
	var forms forms
	forms.add(f, "response_format", f.responseFormat())
	forms.add(f, "structured_outputs", f.structured())
	for _, name := range []string{"guided_json", "json_schema"} {
		forms.add(f, name, f.schema(name))
	}
	for _, name := range []string{"guided_regex", "regex"} {
		forms.add(f, name, f.regex(name))
	}
	forms.add(f, "guided_choice", f.choice("guided_choice"))
	for _, name := range []string{"guided_grammar", "grammar", "ebnf"} {
		forms.add(f, name, f.grammar(name))
	}
	return forms.found
}

// forms are those that are given, of which there may be one.
type forms struct {
	found *grammar.Spec
	field string
}

// add takes the form that a field has, if any.
func (s *forms) add(f fields, field string, form *grammar.Spec) {
	switch {
	case form == nil:
	case s.found != nil:
		f.Invalid(field, "and %s are both given: an answer has one form, leave one of them out", s.field)
	default:
		s.found, s.field = form, field
	}
}

// responseFormat reads OpenAI's form.
func (f fields) responseFormat() *grammar.Spec {
	const name = "response_format"
	o := f.Object(name)
	if o == nil {
		return nil
	}
	var kind string
	if o.Enum("type", &kind, "text", "json_object", "json_schema"); kind == "" {
		o.Invalid("type", "is required")
	}
	switch kind {
	case "json_object":
		if schema := (fields{o}).schema("schema"); schema != nil { // llama.cpp's
			return schema
		}
		return api.AnyObject(o.Path("type"))
	case "json_schema":
		inner := o.Object(kind)
		if inner == nil {
			o.Invalid(kind, "is required")
			return nil
		}
		inner.FormName("name")
		strict := false
		inner.Bool("strict", &strict)
		return inner.Schema("schema", !strict)
	}
	return nil
}

// structured reads vLLM's form, whose fields are those of guided_json and so on.
func (f fields) structured() *grammar.Spec {
	const name = "structured_outputs"
	object := f.Object(name)
	if object == nil {
		return nil
	}
	o := fields{object}
	for _, name := range []string{"structural_tag", "whitespace_pattern"} {
		o.Refuse(name, api.Never)
	}
	o.Refuse("disable_additional_properties", api.IsFalse)
	var forms forms
	forms.add(o, "json", o.schema("json"))
	forms.add(o, "regex", o.regex("regex"))
	forms.add(o, "choice", o.choice("choice"))
	forms.add(o, "grammar", o.grammar("grammar"))
	anything := false
	if o.Bool("json_object", &anything); anything {
		forms.add(o, "json_object", api.AnyObject(o.Path("json_object")))
	}
	if forms.found == nil {
		f.Invalid(name, "must have one of json, regex, choice, grammar and json_object")
	}
	dense := false
	if o.Bool("disable_any_whitespace", &dense); dense && forms.found != nil {
		forms.found.Notation = grammar.Compact
	}
	return forms.found
}

// schema reads a JSON schema, or a text of one. An empty text is none.
func (f fields) schema(name string) *grammar.Spec {
	switch v := f.Take(name).(type) {
	case nil:
	case jsontree.String:
		if v != "" {
			return &grammar.Spec{Kind: grammar.Schema, Name: f.Path(name), Text: string(v)}
		}
	case *jsontree.Object:
		return f.Schema(name, false)
	default:
		f.WrongKind(name, "a JSON schema, which is an object", v)
	}
	return nil
}

// regex reads a regular expression that the whole text matches. An empty one is none.
func (f fields) regex(name string) *grammar.Spec {
	var text string
	if !f.Text(name, &text) || text == "" {
		return nil
	}
	return &grammar.Spec{Kind: grammar.Regex, Name: f.Path(name), Text: text}
}

// choice reads the texts of which the answer is one.
func (f fields) choice(name string) *grammar.Spec {
	if f.Take(name) == nil {
		return nil
	}
	s := &grammar.Spec{Kind: grammar.Choice, Name: f.Path(name)}
	for i, item := range f.List(name) {
		word, ok := item.(jsontree.String)
		if !ok {
			f.Invalid(name, "must hold strings; entry %d is %s", i, item.Kind())
			return nil
		}
		s.Words = append(s.Words, string(word))
	}
	if len(s.Words) == 0 {
		f.Invalid(name, "must be an array of at least one string")
	}
	return s
}

// ruleOfGBNF finds a line that begins with the name of a rule and ::=, where no Lark grammar has one: in Lark that stands only
// within texts, patterns and comments. Between the two there may be comments.
var ruleOfGBNF = regexp.MustCompile(`(?m)^(?:\s|/\*(?s:.*?)\*/)*<?[\w-]+>?(?:\s|/\*(?s:.*?)\*/|#[^\n]*\n)*::=`)

// firstRule is within how many bytes a grammar has its first rule.
const firstRule = 64 << 10

// grammar reads a grammar: one with a rule of GBNF or EBNF is that, another one is Lark. An empty one is none.
func (f fields) grammar(name string) *grammar.Spec {
	var text string
	if !f.Text(name, &text) || text == "" {
		return nil
	}
	s := &grammar.Spec{Kind: grammar.Lark, Name: f.Path(name), Text: text}
	if ruleOfGBNF.MatchString(text[:min(len(text), firstRule)]) {
		s.Kind = grammar.GBNF
	}
	return s
}
