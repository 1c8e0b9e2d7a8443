// Package schema makes a grammar of a JSON schema: its texts are the values that the schema allows, each property at its place in the schema.
//
// A schema is first read as a set of values (set.go): what it allows of each type, with subschemas as nodes that are read when they are needed.
// Nodes are united, intersected and complemented, so that allOf, anyOf, oneOf, not, if, and keywords beside $ref are exact. The set is then
// written in a notation.
//
// Drafts 4 to 2020-12 are read, and nullable of OpenAPI. Keywords that are unknown, or that only describe, are ignored as the standard says. A
// schema that asks for what cannot be held is refused with the path and the keyword: nothing is left out silently.
//
// Every text of the grammar is a value that the schema allows. Of the texts of such values these are left out:
//
//   - properties in another order than that of properties, or ahead of it those that it does not name; required ones that no schema
//     describes may come in any order among the latter
//   - strings that a keyword bounds, but for one spelling: each character as it is, escaped by a letter or as \u00xx only where it must be
//   - numbers that a keyword bounds with an exponent, unless Python would write a float so; integers with an exponent, and those of type integer
//     with a point or as minus zero, which programs do not read into an integer
//   - where alternatives overlap so much that they cannot be taken apart within the limit of work, values that lie in one of them only by what
//     is within an array or an object of another
//
// Formats are held, not only noted. A property that the schema does not name may come twice, as no grammar can tell; readers refuse that or
// take one of them.
package schema

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Notation is how values are written.
type Notation string

// Notations.
const (
	Compact  Notation = "compact"  // JSON without white space
	Spaced   Notation = "spaced"   // JSON with one blank behind commas and colons, as Python and templates write it
	Flexible Notation = "flexible" // JSON with white space where JSON allows it, at most a line end and 20 blanks at a place
	QwenXML  Notation = "qwen"     // an object as <parameter=key>\nvalue\n</parameter>\n: strings as they are, other values in JSON
	MiniMax  Notation = "minimax"  // an object as <parameter name="key">value</parameter>\n: likewise
	Gemma    Notation = "gemma"    // Gemma-4's, an object as {key:value}: keys bare and sorted, strings between <|"|>
)

// Options say how values are written and how much a schema may take.
type Options struct {
	Notation Notation                 // "": Compact
	Mark     func(text string) string // spells a mark of the notation, which may be a control token; nil: as it stands
	Limits   Limits                   // of what the schema takes
}

// mark spells a mark.
func (o *Options) mark(text string) string {
	if o.Mark == nil {
		return text
	}
	return o.Mark(text)
}

// Limits bound what a schema takes. Zero fields have defaults.
type Limits struct {
	Depth   int // nesting of the schema's text; default 256
	Values  int // values and keys of the schema's text; default 250,000
	Work    int // steps of reading, which bounds time and memory; default 500,000
	Symbols int // symbols of the grammar; default 250,000
}

func (l *Limits) fill() {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.Depth, 256}, {&l.Values, 250_000}, {&l.Work, 500_000}, {&l.Symbols, 250_000}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
}

// Invalid is a schema that is none.
type Invalid struct {
	Path   string // where, as a JSON pointer behind #
	Reason string // what is wrong with it
}

// Error implements error.
func (e *Invalid) Error() string {
	return fmt.Sprintf("not a JSON schema: at %s: %s", e.Path, e.Reason)
}

// Unsupported is a keyword that cannot be held.
type Unsupported struct {
	Path    string // of the schema that has the keyword, as a JSON pointer behind #
	Keyword string // "" where the whole schema takes too much
	Reason  string // why not, or what to write in its place
}

// Error implements error.
func (e *Unsupported) Error() string {
	keyword := ""
	if e.Keyword != "" {
		keyword = fmt.Sprintf("%q: ", e.Keyword)
	}
	return fmt.Sprintf("this JSON schema cannot be held to: at %s: %s%s", e.Path, keyword, e.Reason)
}

// Unsatisfiable is a schema that no value satisfies.
type Unsatisfiable struct{}

// Error implements error.
func (*Unsatisfiable) Error() string {
	return "no value satisfies this JSON schema: its keywords contradict each other"
}

// Add adds the values of a schema to a grammar. Its errors are Invalid, Unsupported and Unsatisfiable.
func Add(b *rules.Builder, schema []byte, options Options) (rules.Symbol, error) {
	symbol, _, err := add(b, schema, options)
	return symbol, err
}

// add is Add, and the compiler that has read the schema.
func add(b *rules.Builder, schema []byte, options Options) (rules.Symbol, *compiler, error) {
	options.Limits.fill()
	root, err := jsontree.Decode(schema, jsontree.Limits{Depth: options.Limits.Depth, Nodes: options.Limits.Values})
	if err != nil {
		return rules.Nothing, nil, &Invalid{Path: "#", Reason: err.Error()}
	}
	symbol, c := compile(b, root, options, false)
	if c.costly {
		symbol, c = compile(b, root, options, true)
	}
	return symbol, c, c.err
}

func compile(b *rules.Builder, root jsontree.Value, options Options, brief bool) (rules.Symbol, *compiler) {
	c := newCompiler(b, options.Limits)
	c.brief = brief
	c.document.open(root)
	start := c.subschema(c.document.root)
	if alive, sure := c.look(start); c.err == nil && !alive && sure {
		c.err = &Unsatisfiable{}
	}
	if c.err != nil {
		return rules.Nothing, c
	}
	symbol := c.write(start, options)
	if c.err != nil {
		symbol = rules.Nothing
	}
	return symbol, c
}
