package api

import (
	"regexp"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// formName is what a schema of an answer may be called.
var formName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// FormName reads the name of a schema, which must be there.
func (f *Fields) FormName(name string) string {
	text := f.Required(name)
	if !formName.MatchString(text) {
		f.Invalid(name, "must have from 1 to 64 letters, digits, _ and -, not %.80q", text)
	}
	return text
}

// Schema reads a JSON schema that an answer must follow, and which must be there. Its form is named for the path of the field. Where the
// schema cannot be held, a loose one takes any object, and another one is refused when it is compiled. nil: there was a problem.
func (f *Fields) Schema(name string, loose bool) *grammar.Spec {
	d := f.Dict(name)
	if d == nil {
		f.Invalid(name, "is required")
		return nil
	}
	return &grammar.Spec{Kind: grammar.Schema, Name: f.Path(name), Text: string(jsontree.Append(nil, d)), Loose: loose}
}

// AnyObject is the form of an answer that is some JSON object. Path is the field that asks for it.
func AnyObject(path string) *grammar.Spec {
	return &grammar.Spec{Kind: grammar.Schema, Name: path, Text: `{"type":"object"}`}
}
