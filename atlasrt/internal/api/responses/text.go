package responses

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// text reads the form of the text, and gives the field as answers repeat it. How verbose the text should be is no question to the models
// here.
func (r *Request) text(f *api.Fields) *jsontree.Object {
	verbosity, format := "medium", jsontree.NewObject()
	format.Set("type", jsontree.String("text"))
	if t := f.Object("text"); t != nil {
		t.Enum("verbosity", &verbosity, "low", "medium", "high")
		if inner := t.Object("format"); inner != nil {
			format = r.format(inner)
		}
	}
	o := jsontree.NewObject()
	o.Set("format", format)
	o.Set("verbosity", jsontree.String(verbosity))
	return o
}

// format reads what text must be: any, any JSON object, or JSON of a schema. A schema that is not strict is followed as far as it can be.
func (r *Request) format(f *api.Fields) *jsontree.Object {
	kind, o := "text", jsontree.NewObject()
	f.Enum("type", &kind, "text", "json_object", "json_schema")
	o.Set("type", jsontree.String(kind))
	switch kind {
	case "json_object":
		r.Options.Form = api.AnyObject("text.format")
	case "json_schema":
		strict, description := false, ""
		o.Set("name", jsontree.String(f.FormName("name")))
		if f.Text("description", &description) {
			o.Set("description", jsontree.String(description))
		}
		f.Bool("strict", &strict)
		o.Set("strict", jsontree.Bool(strict))
		if r.Options.Form = f.Schema("schema", !strict); r.Options.Form != nil {
			schema, _ := f.Peek("schema")
			o.Set("schema", schema)
		}
	}
	return o
}
