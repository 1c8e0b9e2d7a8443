// Package grammar holds answers to a form: a JSON schema, a regular expression, a list of choices, a grammar, or the calls of tools as a model
// writes them.
//
// Compile makes a Grammar of a Spec for a Vocabulary. Its State says which tokens may come next.
package grammar

import "github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"

// Kind is what a Spec is.
type Kind string

// Kinds of specs.
const (
	Schema   Kind = "schema"   // a value that the JSON schema in Text allows, in a Notation
	Regex    Kind = "regex"    // a text that the regular expression in Text matches as a whole
	Choice   Kind = "choice"   // one of Words
	GBNF     Kind = "gbnf"     // a text of the grammar in Text, as llama.cpp writes them; W3C's and xgrammar's EBNF are read as well
	Lark     Kind = "lark"     // a text of the grammar in Text, in the language of the Python package lark
	Literal  Kind = "literal"  // Text itself
	Control  Kind = "control"  // the control token whose text is Text; where the vocabulary has none, that text
	Free     Kind = "free"     // any text and any control tokens in which none of Words comes; a word is a control token where the vocabulary has it
	Sequence Kind = "sequence" // Parts, one behind the other
	Either   Kind = "either"   // one of Parts
	Repeat   Kind = "repeat"   // Parts[0], from Min to Max times
)

// Notation is how values of a schema are written.
type Notation = schema.Notation

// Notations of values: see package schema.
const (
	Compact  = schema.Compact
	Spaced   = schema.Spaced
	Flexible = schema.Flexible
	QwenXML  = schema.QwenXML
	MiniMax  = schema.MiniMax
	Gemma    = schema.Gemma
)

// Unbounded is a Max without a bound.
const Unbounded = -1

// Spec says what a text must be. It is plain data: it can be encoded, hashed, and compiled in another process.
type Spec struct {
	Kind     Kind     `json:"kind"`               // what the other fields mean
	Name     string   `json:"name,omitempty"`     // of the part, for whoever asked for it; errors begin with it
	Text     string   `json:"text,omitempty"`     // schema, expression, grammar or text
	Not      string   `json:"not,omitempty"`      // of Free: a regular expression that matches no beginning of the text
	Words    []string `json:"words,omitempty"`    // of Choice and Free
	Parts    []Spec   `json:"parts,omitempty"`    // of Sequence, Either and Repeat
	Min      int      `json:"min,omitempty"`      // of Repeat
	Max      int      `json:"max,omitempty"`      // of Repeat; may be Unbounded
	Notation Notation `json:"notation,omitempty"` // of Schema; "": Compact
	Loose    bool     `json:"loose,omitempty"`    // of a Schema that is right but cannot be held: any object will do, and Grammar.Notes says so
}
