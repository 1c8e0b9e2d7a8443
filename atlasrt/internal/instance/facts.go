package instance

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
)

// Facts is what one source says of a model beside its checkpoint: its publisher, or whoever runs it. Fields that are zero say nothing.
type Facts struct {
	From      string   // the source, in words: "preset qwen3"
	Operator  bool     // whoever runs the model says so: it counts more than the checkpoint
	Sampling  Defaults // of answers with thoughts, and of models that have one kind of answers
	Plain     Defaults // of answers without thoughts
	Thinking  *bool    // whether the model thinks where a request says nothing
	Budget    *int     // most tokens of thoughts where a request says nothing; 0: no bound
	Close     string   // what ends thoughts that reach their budget
	Reasoning string   // format of its thoughts, or NoFormat
	Tools     string   // format of its calls, or NoFormat
	End       []string // texts of tokens that end an answer besides others
}

// Policy is what whoever runs the server allows requests, and gives those that say nothing.
type Policy struct {
	NoThinking bool             // no request gets thoughts
	MaxBudget  int              // most tokens of thoughts that a request may ask for; 0: no bound
	Floor      int              // tokens of an answer that are kept for the text behind its thoughts
	ToolTokens int              // most tokens of an answer to a request with tools that has no bound of its own; 0: no bound
	Notation   grammar.Notation // of JSON in answers that have a form; "": compact
}

// Setting is a value and where it comes from.
type Setting struct{ Name, Value, From string }

// Learn takes what is known of the model beside its checkpoint. What one says counts more than what those behind it say.
func (t *Text) Learn(facts ...Facts) {
	t.Facts = facts
	for _, f := range facts {
		for _, text := range f.End {
			if id, ok := t.Tokenizer.ID(text); !ok {
				t.Details = append(t.Details, fmt.Sprintf("%s: no token of the model is %s, which would end answers", f.From, text))
			} else if t.addEnd(id) {
				t.Details = append(t.Details, fmt.Sprintf("answers also end at %s (%d): %s", text, id, f.From))
			}
		}
	}
	t.findFormats()
}

// said is the first value that facts have, and who says so.
func said[T any](all []Facts, value func(*Facts) (T, bool)) (v T, from string, ok bool) {
	for i := range all {
		if v, ok := value(&all[i]); ok {
			return v, all[i].From, true
		}
	}
	return v, "default", false
}

// thinks is whether the model thinks where a request says nothing; nil: its template decides.
func (t *Text) thinks() (on *bool, from string) {
	on, from, _ = said(t.Facts, func(f *Facts) (*bool, bool) { return f.Thinking, f.Thinking != nil })
	return on, from
}

// budget is the most tokens of thoughts where a request says nothing.
func (t *Text) budget() (tokens int, from string) {
	tokens, from, _ = said(t.Facts, func(f *Facts) (int, bool) {
		if f.Budget == nil {
			return 0, false
		}
		return *f.Budget, true
	})
	return tokens, from
}
