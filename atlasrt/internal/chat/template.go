// Package chat holds what a conversation is made of, the template that turns it into a prompt, and the events of an answer.
//
// Invariants: the package is pure. Only the literals of a template, its special tokens and known role names may become control
// tokens; every byte that comes from a request lies in a range of Prompt.Data and must be tokenised as plain text. Text and
// ranges together are what a tokenizer needs: it encodes the whole text, and takes a special token only where no byte of it is data.
package chat

import (
	"fmt"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
)

// Prompt is the rendered text and the ranges of bytes in it that are data.
type Prompt = jinja.Prompt

// Range is a half-open range of bytes.
type Range = jinja.Range

// SpecialToken is a token of the tokenizer's configuration under the name that templates use, such as bos_token.
type SpecialToken struct{ Variable, Text string }

// Template turns requests into prompts. It is safe for concurrent use.
type Template struct {
	template *jinja.Template
	special  []SpecialToken
	limits   jinja.Limits
}

// ParseTemplate reads the chat_template of a checkpoint. The special tokens are those of its tokenizer (special_tokens_map);
// zero limits mean their defaults.
func ParseTemplate(source string, special []SpecialToken, limits jinja.Limits) (*Template, error) {
	t, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return &Template{template: t, special: special, limits: limits}, nil
}

// Prompt renders a request. now is what strftime_now prints. An error of the template is a *jinja.Error: of kind Raised where
// the template refuses the conversation, which is the client's fault, as Runtime and Limit mostly are.
func (t *Template) Prompt(request *Request, now time.Time) (Prompt, error) {
	variables, err := request.variables(t.special)
	if err != nil {
		return Prompt{}, err
	}
	p, err := t.template.Prompt(variables, jinja.Options{Now: now, Limits: t.limits, Context: request.Context})
	if err != nil {
		return Prompt{}, fmt.Errorf("chat template: %w", err)
	}
	return p, nil
}

// RenderRequest renders a template for a request given as one JSON object: messages, tools, add_generation_prompt, and any
// further key as a variable of its own. Nothing is converted: the text is what Python makes of the same two files.
func RenderRequest(template string, request []byte, now time.Time) (string, error) {
	t, err := jinja.Parse(template)
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	v, err := jinja.DecodeJSON(request, jinja.JSONLimits{})
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
		return "", fmt.Errorf("chat template: %w", err)
	}
	return text, nil
}
