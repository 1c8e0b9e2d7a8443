// Package judge tries JSON schemas with instances that are known to be valid or not, as MaskBench does, and takes the times.
package judge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/schema"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// Case is a schema with instances: a line of MaskBench's form.
type Case struct {
	Name   string          `json:"name"`   // its source first, as in Github_easy---o9838
	Schema json.RawMessage `json:"schema"` // any JSON
	Tests  []Instance      `json:"tests"`  // may be empty
}

// Instance is a value that is valid or not.
type Instance struct {
	Valid bool            `json:"valid"` // by a validator
	Data  json.RawMessage `json:"data"`  // any JSON
}

// mostLine bounds a line of cases, in bytes.
const mostLine = 64 << 20

// Read reads cases, one a line. Errors name the line.
func Read(r io.Reader) ([]Case, error) {
	var cases []Case
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c Case
		err := json.Unmarshal(lines.Bytes(), &c)
		if err == nil && c.Schema == nil {
			err = errors.New("there is no schema")
		}
		for i, test := range c.Tests {
			if err == nil && test.Data == nil {
				err = fmt.Errorf("test %d has no data", i)
			}
		}
		if err != nil {
			return nil, fmt.Errorf(`line %d: %w (a line must be {"name": …, "schema": …, "tests": [{"valid": …, "data": …}]})`, n, err)
		}
		cases = append(cases, c)
	}
	return cases, lines.Err()
}

// Source is where a case comes from: what its name begins with.
func (c *Case) Source() string {
	if source, _, ok := strings.Cut(c.Name, "---"); ok {
		return source
	}
	source, _, _ := strings.Cut(c.Name, "_")
	return source
}

// Judge tries cases with the tokens of a model.
type Judge struct {
	Vocabulary *match.Vocabulary    // of Tokenizer
	Tokenizer  *tokenizer.Tokenizer // cuts the instances into tokens
	Notation   grammar.Notation     // one of JSON; instances are written compact, or for Spaced spaced
	Limits     grammar.Limits       // of each schema
	mask       []uint32
}

// NewVocabulary is the vocabulary of a tokenizer.
func NewVocabulary(tok *tokenizer.Tokenizer) *match.Vocabulary {
	return match.NewVocabulary(tok.Bytes(tok.VocabSize()), tok.IsSpecial)
}

// Verdict is how a case went.
type Verdict struct {
	Name    string       `json:"name"`              // of the case
	Source  string       `json:"source"`            // of the case
	Refused *Refusal     `json:"refused,omitempty"` // nil: the schema was compiled
	Notes   []string     `json:"notes,omitempty"`   // on what is not held as it seems to be asked
	Compile Microseconds `json:"compile_us"`        // to the first mask, or to the refusal
	Tests   []Outcome    `json:"tests,omitempty"`   // by instance; none where the schema was refused
}

// Refusal is why a schema is not compiled.
type Refusal struct {
	Path    string `json:"path"`    // of the schema that is at fault, as a JSON pointer behind #
	Keyword string `json:"keyword"` // at fault; "": the schema as a whole
	Reason  string `json:"reason"`  // the error, for people
}

// Outcome is how an instance went.
type Outcome struct {
	Valid    bool           `json:"valid"`              // whether it should be accepted
	Accepted bool           `json:"accepted"`           // whether it was
	Bytes    int            `json:"bytes"`              // of its text
	Stopped  int            `json:"stopped"`            // the byte where it was stopped; Bytes: it may not end there, or was accepted
	Order    bool           `json:"order,omitempty"`    // it was stopped, and is accepted with its properties in another order
	Error    string         `json:"error,omitempty"`    // a mask could not be made
	Masks    []Microseconds `json:"masks_us,omitempty"` // of a valid instance: the mask before each token, and the one at the end
	Text     string         `json:"-"`                  // of the instance
}

// Around is the instance's text near the byte where it was stopped.
func (o *Outcome) Around() string {
	from, to := max(o.Stopped-60, 0), min(o.Stopped+20, len(o.Text))
	return strings.ToValidUTF8(o.Text[from:o.Stopped]+" ▸ "+o.Text[o.Stopped:to], "?")
}

// Microseconds is a time.
type Microseconds float64

// since is the time since a moment.
func since(begin time.Time) Microseconds { return Microseconds(float64(time.Since(begin)) / 1e3) }

// Try compiles the schema of a case and goes through its instances, several times, each with a new grammar. The least time of each mask counts:
// other programs run on the computer as well. An error is about the case, not about the schema.
func (j *Judge) Try(c *Case, times int) (*Verdict, error) {
	v, err := j.try(c)
	for again := 1; again < times && err == nil; again++ {
		var next *Verdict
		if next, err = j.try(c); err == nil {
			v.least(next)
		}
	}
	return v, err
}

// least takes the lesser times of two verdicts of a case.
func (v *Verdict) least(other *Verdict) {
	v.Compile = min(v.Compile, other.Compile)
	for i := range v.Tests {
		for at := range v.Tests[i].Masks {
			v.Tests[i].Masks[at] = min(v.Tests[i].Masks[at], other.Tests[i].Masks[at])
		}
	}
}

func (j *Judge) try(c *Case) (*Verdict, error) {
	v := &Verdict{Name: c.Name, Source: c.Source()}
	if j.mask == nil {
		j.mask = make([]uint32, j.Vocabulary.Words())
	}
	begin := time.Now()
	g, err := grammar.Compile(context.Background(), grammar.Spec{Kind: grammar.Schema, Text: string(c.Schema), Notation: j.Notation}, j.Vocabulary, j.Limits)
	if err == nil {
		err = g.Start().Mask(j.mask)
	}
	v.Compile = since(begin)
	if err != nil {
		v.Refused = refusal(err)
		return v, nil
	}
	for _, note := range g.Notes() {
		v.Notes = append(v.Notes, note.String())
	}
	for i, test := range c.Tests {
		value, err := jsontree.Decode(test.Data, jsontree.Limits{Depth: 1000, Nodes: mostLine})
		if err != nil {
			return nil, fmt.Errorf("%s: test %d: %w", c.Name, i, err)
		}
		text := jsontree.AppendDumps(nil, value, j.separators())
		o := Outcome{Valid: test.Valid, Bytes: len(text), Text: string(text)}
		end, n := g.Start().NextBytes(text)
		o.Accepted, o.Stopped = n == len(text) && end.Done(), n
		if o.Valid {
			j.masks(g.Start(), &o)
		}
		if o.Valid && !o.Accepted && o.Error == "" {
			if o.Order, err = j.ordered(g.Start(), c.Schema, value); err != nil {
				return nil, fmt.Errorf("%s: test %d: %w", c.Name, i, err)
			}
		}
		v.Tests = append(v.Tests, o)
	}
	return v, nil
}

// ordered tells whether a value is accepted once its properties are in the schema's order.
func (j *Judge) ordered(start match.State, text []byte, v jsontree.Value) (bool, error) {
	arranged, ok, err := schema.Arrange(text, v, j.Limits.Schema)
	if !ok || err != nil {
		return false, err
	}
	text = jsontree.AppendDumps(nil, arranged, j.separators())
	end, n := start.NextBytes(text)
	return n == len(text) && end.Done(), nil
}

// separators are what instances are written with.
func (j *Judge) separators() jsontree.Separators {
	if j.Notation == grammar.Spaced {
		return jsontree.Spaced
	}
	return jsontree.Compact
}

// masks makes the mask before each token of an instance, and is strict: the token must be in it.
func (j *Judge) masks(s match.State, o *Outcome) {
	at := 0
	for _, token := range append(j.Tokenizer.Encode(o.Text, false), -1) {
		begin := time.Now()
		err := s.Mask(j.mask)
		o.Masks = append(o.Masks, since(begin))
		if err != nil {
			o.Accepted, o.Stopped, o.Error = false, at, err.Error()
			return
		}
		if token < 0 {
			return
		}
		next, fits := s.Next(token)
		if in := j.mask[token/32]>>(token%32)&1 == 1; in != fits {
			o.Accepted, o.Stopped, o.Error = false, at, fmt.Sprintf("the mask of token %d is %t, and the token fits: %t", token, in, fits)
			return
		}
		if !fits {
			o.Accepted, o.Stopped = false, min(o.Stopped, at+len(j.Tokenizer.TokenBytes(token)))
			return
		}
		s, at = next, at+len(j.Tokenizer.TokenBytes(token))
	}
}

// refusal says what an error of Compile names.
func refusal(err error) *Refusal {
	r := &Refusal{Path: "#", Reason: err.Error()}
	var unsupported *schema.Unsupported
	var invalid *schema.Invalid
	switch {
	case errors.As(err, &unsupported):
		r.Path, r.Keyword, r.Reason = unsupported.Path, unsupported.Keyword, unsupported.Reason
	case errors.As(err, &invalid):
		r.Path, r.Reason = invalid.Path, invalid.Reason
	}
	return r
}
