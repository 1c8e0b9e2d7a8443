package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Unread is a word of a schema that answers are not held to, since nothing is known of it. The standard says to go on without
// it, so that Add does.
type Unread struct {
	Path    string // of the schema that has it, as a JSON pointer behind #
	Keyword string // that has it, or that it is
	Value   string // of the keyword; "": the keyword itself is not known
}

// Error implements error.
func (u *Unread) Error() string {
	switch {
	case u.Value == "":
		return fmt.Sprintf("at %s: nothing is known of the keyword %q: it asks nothing", u.Path, u.Keyword)
	case u.Keyword == "$schema":
		return fmt.Sprintf("at %s: nothing is known of the edition %q: the schema is read as one of draft 2020-12", u.Path, u.Value)
	}
	return fmt.Sprintf("at %s: nothing is known of the %s %q: it asks nothing", u.Path, u.Keyword, u.Value)
}

// FindUnread looks for what Add goes on without: keywords and formats that nobody knows, but for keywords that begin with x-, and an
// edition of JSON Schema that nobody knows. It gives the first ones of many. A text that is no JSON has none.
func FindUnread(text []byte, limits Limits) (all []*Unread) {
	limits.fill()
	root, err := jsontree.Decode(text, jsontree.Limits{Depth: limits.Depth, Nodes: limits.Values})
	if err != nil {
		return nil
	}
	findUnread(place{schema: root, path: &path{}}, func(u Unread) {
		if len(all) < mostUnread {
			all = append(all, &u)
		}
	})
	return all
}

// mostUnread is how many of them are given.
const mostUnread = 20

// findUnread looks through a schema and those within it.
func findUnread(p place, found func(Unread)) {
	o, ok := p.schema.(*jsontree.Object)
	if !ok {
		return
	}
	for name, v := range o.All() {
		value, isText := v.(jsontree.String)
		switch {
		case name == "$schema" && isText:
			if _, known := draftOf(string(value)); !known {
				found(Unread{p.path.String(), name, string(value)})
			}
		case name == "format" && isText:
			if formats[string(value)] == "" && unheldFormats[string(value)] == "" {
				found(Unread{p.path.String(), name, string(value)})
			}
		case !strings.HasPrefix(name, "x-") && !slices.Contains(knownKeywords, name):
			found(Unread{Path: p.path.String(), Keyword: name})
		}
		below := func(v jsontree.Value, names ...string) {
			var d document
			findUnread(d.at(p, v, names...), found)
		}
		if slices.Contains(schemaKeywords, name) {
			below(v, name)
		}
		if list, ok := v.(jsontree.Array); ok && slices.Contains(listKeywords, name) {
			for i, v := range list {
				below(v, name, fmt.Sprint(i))
			}
		}
		if members, ok := v.(*jsontree.Object); ok && slices.Contains(mapKeywords, name) {
			for key, v := range members.All() {
				below(v, name, key)
			}
		}
	}
}

// knownKeywords are those that are read, and those that ask nothing by what the standard says of them.
var knownKeywords = slices.Concat(schemaKeywords, listKeywords, mapKeywords, strings.Fields(`
	type nullable enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format
	minItems maxItems uniqueItems minContains maxContains required minProperties maxProperties dependentRequired
	$ref $id id $anchor $schema $vocabulary $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor
	title description default example examples $comment deprecated readOnly writeOnly contentEncoding contentMediaType`))
