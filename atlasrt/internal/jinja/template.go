// Package jinja renders chat templates: the part of Jinja2 that Hugging Face's apply_chat_template offers, byte for byte.
//
// The environment is fixed: sandboxed and immutable, trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson as
// json.dumps writes it without ASCII escapes, raise_exception, strftime_now. Templates load no other templates. What Jinja has for web pages alone (such filters, call
// blocks, recursive loops) is refused by name.
//
// Invariants: a Template never changes after Parse and serves any number of goroutines. Nothing that a template or its
// variables hold can panic, recurse without bound or take more steps and text than Limits grants. A string knows which of its
// bytes come from variables and which from the template (Prompt), so that a request cannot write control tokens.
package jinja

import (
	"context"
	"time"
)

// Template is a parsed template.
type Template struct {
	body    []stmt
	root    *scope
	context []string // names looked up among the variables of a render
}

// Limits bound one render. A zero field means its default.
type Limits struct {
	// Steps is the number of operations; each byte of the variables adds stepsPerByte. Default 1,000,000.
	Steps int
	// Depth bounds nested calls of macros, and nested values. Default 200.
	Depth int
	// Text is the largest text in bytes, output included. Default: 4 times the bytes of template and variables, plus 1 MiB.
	Text int
}

const (
	defaultSteps = 1_000_000
	defaultDepth = 200
	stepsPerByte = 4
	bytesPerStep = 32 // a step copies this many bytes
)

// Options set up a render.
type Options struct {
	// Now is the time that strftime_now prints; where it is zero the template does not see strftime_now.
	Now    time.Time
	Limits Limits
	// Context, where it is not nil, ends the render soon after it is done. The error is its cause then.
	Context context.Context
}

// Prompt is a rendered text with the ranges of bytes that come from variables: sorted, apart, not empty.
type Prompt struct {
	Text string  // what the template rendered
	Data []Range // parts of Text that come from a client
}

// Parse reads a template. Errors are *Error of kind Syntax or Limit.
func Parse(source string) (*Template, error) {
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, err := p.template()
	if err != nil {
		return nil, err
	}
	t := &Template{body: body}
	t.root = newScope(nil, &function{slots: map[slotKey]int{}})
	t.root.declareBody(body)
	b := binder{scope: t.root, template: t}
	b.seal()
	if err := b.body(body); err != nil {
		return nil, err
	}
	return t, nil
}

// contextIndex is the number of a name among those looked up in the variables.
func (t *Template) contextIndex(id string) int {
	for i, known := range t.context {
		if known == id {
			return i
		}
	}
	t.context = append(t.context, id)
	return len(t.context) - 1
}

// Render returns the text of the template for these variables. Errors are *Error.
func (t *Template) Render(variables *Dict, options Options) (string, error) {
	p, err := t.Prompt(variables, options)
	return p.Text, err
}

// Prompt renders and says which bytes are data. Errors are *Error.
func (t *Template) Prompt(variables *Dict, options Options) (Prompt, error) {
	r, err := newRun(t, variables, options)
	if err != nil {
		return Prompt{}, err
	}
	r.enterScope(t.root)
	if _, err := r.exec(t.body); err != nil {
		return Prompt{}, err
	}
	if r.over != nil {
		return Prompt{}, r.over
	}
	return Prompt{Text: string(r.out.text), Data: r.out.data}, nil
}
