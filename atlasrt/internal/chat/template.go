// Package chat holds what a conversation is made of, the template that turns it into a prompt, and the events of an answer.
//
// Every dialect hands its conversations over as a Request. A template is tried with small conversations when it is parsed, and
// each request is then put into the form that it takes (Capabilities, adapt.go): roles, null contents, parts, arguments, turns
// in a row. What a conversation says reaches the prompt or the request is refused; nothing of it vanishes.
//
// Invariants: the package is pure. Only the literals of a template, its special tokens and known role names may become control
// tokens; every byte that comes from a request lies in a range of Prompt.Data and must be tokenised as plain text. Text and
// ranges together are what a tokenizer needs: it encodes the whole text, and takes a special token only where no byte of it is data.
package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Prompt is the rendered text and the ranges of bytes in it that are data: sorted, apart, not empty.
type Prompt struct {
	Text string
	Data []Range
}

// Range is a half-open range of bytes.
type Range struct{ Start, End int }

// SpecialToken is a token of the tokenizer's configuration under the name that templates use, such as bos_token. Where
// Texts is not nil, the name stands for a list, such as additional_special_tokens.
type SpecialToken struct {
	Variable, Text string // the name in templates, and what it stands for
	Texts          []string
}

// Template turns requests into prompts. It is safe for concurrent use.
type Template struct {
	template *jinja.Template
	special  []SpecialToken
	can      Capabilities
}

// Error is the failure of a template.
type Error struct {
	Line    int    // of the template, from 1; 0 where unknown
	Raised  bool   // the template refuses the conversation; the message is its author's
	Message string // what went wrong
}

// Error names the template and its line, where that is known.
func (e *Error) Error() string {
	if e.Line == 0 {
		return "chat template: " + e.Message
	}
	return fmt.Sprintf("chat template: template line %d: %s", e.Line, e.Message)
}

// Refusal says why one message of a conversation cannot be shown to the model.
type Refusal struct {
	Message int    // from 0
	Reason  string // goes on after "messages[0] "
}

// Error names the message and says what is wrong with it.
func (e *Refusal) Error() string { return fmt.Sprintf("messages[%d] %s", e.Message, e.Reason) }

// NoTools says that a template does not show the tools of a request, so that the model would not know them.
type NoTools struct{}

// Error says what to do.
func (*NoTools) Error() string {
	return "this model's chat template shows no tools: leave them out, or serve the model with a template that shows them (--chat-template)"
}

// ParseTemplate reads the chat_template of a checkpoint and tries what it can do. The special tokens are those of its tokenizer
// (special_tokens_map). Errors are *Error.
func ParseTemplate(source string, special []SpecialToken) (*Template, error) {
	parsed, err := jinja.Parse(source)
	if err != nil {
		return nil, templateError(err)
	}
	t := &Template{template: parsed, special: special}
	t.can = try(t)
	return t, nil
}

// Capabilities are what the template does with conversations.
func (t *Template) Capabilities() Capabilities { return t.can }

// Prompt renders a request. now is what strftime_now prints. Errors are the client's fault: a *Refusal that blames a message,
// *NoTools, or an *Error of the template. Work ends soon after ctx does, with an error.
func (t *Template) Prompt(ctx context.Context, r *Request, now time.Time) (Prompt, error) {
	if len(r.Tools) > 0 && !t.can.Tools {
		return Prompt{}, &NoTools{}
	}
	p, err := t.prompt(ctx, &t.can, r, now)
	if err == nil {
		return p, nil
	}
	// Some templates take system messages, or turns in a row, in some conversations only. Plainer ones they take always.
	plainer := t.can
	plainer.Developer, plainer.Systems, plainer.RepeatedUsers, plainer.RepeatedAssistants, plainer.acrossCalls = false, false, false, false, true
	plainest := plainer
	plainest.System, plainest.LateSystem = false, false
	for _, can := range []*Capabilities{&plainer, &plainest} {
		if again, failed := t.prompt(ctx, can, r, now); failed == nil {
			return again, nil
		}
	}
	return Prompt{}, err
}

func (t *Template) prompt(ctx context.Context, can *Capabilities, r *Request, now time.Time) (Prompt, error) {
	turns, err := can.adapt(r)
	if err != nil {
		return Prompt{}, err
	}
	if r.Continue {
		return t.unfinished(ctx, r, turns, now)
	}
	p, err := t.render(ctx, r, turns, now)
	if err == nil {
		err = t.complete(ctx, p, r, turns, now)
	}
	if err != nil {
		return Prompt{}, err
	}
	return p, nil
}

// render hands turns to the template as they are.
func (t *Template) render(ctx context.Context, r *Request, turns []turn, now time.Time) (Prompt, error) {
	adapted := *r
	adapted.Messages = make([]Message, len(turns))
	for i := range turns {
		adapted.Messages[i] = turns[i].Message
	}
	return t.renderAs(ctx, &t.can, &adapted, now)
}

func (t *Template) renderAs(ctx context.Context, c *Capabilities, r *Request, now time.Time) (Prompt, error) {
	v := values{form: c.form()}
	variables := v.request(r, r.Thinking.variables(c), t.special)
	if v.err != nil {
		return Prompt{}, v.err
	}
	p, err := t.template.Prompt(variables, jinja.Options{Now: now, Context: ctx})
	if err != nil {
		return Prompt{}, templateError(err)
	}
	out := Prompt{Text: p.Text, Data: make([]Range, len(p.Data))}
	for i, r := range p.Data {
		out.Data[i] = Range(r)
	}
	return out, nil
}

func templateError(err error) error {
	if e, ok := err.(*jinja.Error); ok {
		return &Error{Line: e.Line, Raised: e.Kind == jinja.Raised, Message: e.Message}
	}
	return &Error{Message: err.Error()}
}

// RenderRequest renders a template for a request given as one JSON object: messages, tools, add_generation_prompt, and any
// further key as a variable of its own. Nothing is converted: the text is what Python makes of the same two files.
func RenderRequest(template string, request []byte, now time.Time) (string, error) {
	t, err := jinja.Parse(template)
	if err != nil {
		return "", templateError(err)
	}
	tree, err := jsontree.Decode(request, jsontree.Limits{})
	if err != nil {
		return "", fmt.Errorf("request: %w", err)
	}
	v, err := jinja.FromJSON(tree)
	if err != nil {
		return "", fmt.Errorf("request: %w", err)
	}
	variables, ok := v.(*jinja.Dict)
	if !ok {
		return "", fmt.Errorf("request: want one JSON object with messages")
	}
	for _, name := range []string{"tools", "documents"} {
		if _, ok := variables.Get(name); !ok {
			set(variables, name, jinja.None{})
		}
	}
	if _, ok := variables.Get("add_generation_prompt"); !ok {
		set(variables, "add_generation_prompt", jinja.Bool(false))
	}
	text, err := t.Render(variables, jinja.Options{Now: now})
	if err != nil {
		return "", templateError(err)
	}
	return text, nil
}
