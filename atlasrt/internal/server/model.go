package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
)

// Template turns a conversation into a prompt, its text and its tokens. now is what templates print as the date. More tokens than
// limit are a *tokenizer.TooLong, and the work ends soon after ctx does. Other errors are the client's fault and shown to it.
type Template interface {
	Prompt(ctx context.Context, request *chat.Request, now time.Time, limit int) (completion.Prompt, error)
}

// Engine is what the server asks about the engine behind a model's generator; *engine.Engine is one.
type Engine interface {
	// See the methods of *engine.Engine.
	Stats() engine.Stats
	Heartbeat() time.Time
	Err() error
	Drain(ctx context.Context) error
}

// Model is one model that is served.
type Model struct {
	Name      string                // that clients ask for, and label of metrics
	Aliases   []string              // further names for it
	Generator *completion.Generator // that answers
	Template  Template              // of conversations; nil: routes that take conversations refuse
	Engine    Engine                // for metrics and health
}

// names are all that clients may call the model.
func (m *Model) names() []string { return append([]string{m.Name}, m.Aliases...) }

// check says what is wrong with the names.
func (m *Model) check() error {
	names := m.names()
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return fmt.Errorf("server: the model's name %q is empty or given twice (name it once)", name)
		}
	}
	return nil
}

// mostCounted is how many tokens of a prompt are made at most. Up to twice the context, the error that it is too long can
// say how many tokens it has.
func (m *Model) mostCounted() int { return 2 * m.Generator.MaxContext }

// prompts are the tokens of what a request asks to be answered. The first prompt that has more than limit ends the work with
// a *tokenizer.TooLong.
func (m *Model) prompts(ctx context.Context, r *api.Request, conversation string, limit int) ([]completion.Prompt, error) {
	if r.Chat != nil {
		prompt, err := m.render(ctx, r.Chat, conversation, limit)
		return []completion.Prompt{prompt}, err
	}
	prompts := make([]completion.Prompt, len(r.Prompts))
	for i, p := range r.Prompts {
		tokens := p.Tokens
		if tokens == nil {
			var err error
			if tokens, err = m.Generator.Encode(ctx, p.Text, r.Special, limit); err != nil {
				return nil, err
			}
		}
		prompts[i] = completion.Prompt{Tokens: tokens, Text: p.Text}
	}
	return prompts, nil
}

// maxTemplateError bounds what is shown of a template's error.
const maxTemplateError = 500

// render makes a conversation into a prompt of at most limit tokens; more are a *tokenizer.TooLong. Errors blame field.
func (m *Model) render(ctx context.Context, r *chat.Request, field string, limit int) (completion.Prompt, error) {
	var none completion.Prompt
	if m.Template == nil {
		return none, api.Unsupported(field, "This model has no chat template; use /v1/completions.")
	}
	resolved := *r
	resolved.Thinking = m.Generator.Resolve(r.Thinking, 0) // what templates are told does not depend on the most tokens
	prompt, err := m.Template.Prompt(ctx, &resolved, time.Now(), limit)
	if _, long := errors.AsType[*tokenizer.TooLong](err); long {
		return none, err
	}
	if err != nil && ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	if e, ok := errors.AsType[*chat.NoTools](err); ok {
		return none, api.Unsupported("tools", "The request has tools, but %s.", e.Error())
	}
	if err != nil {
		text := err.Error()
		if e, ok := errors.AsType[*chat.Refusal](err); ok {
			field = r.Name(e.Message)
			text = field + " " + e.Reason
		}
		return none, api.Invalid(field, "The conversation does not fit the model: %s", strings.ToValidUTF8(text[:min(len(text), maxTemplateError)], ""))
	}
	return prompt, nil
}

// model finds a model by a name that a client gave; no name means the default model.
func (s *Server) model(name string) (*Model, error) {
	m := &s.config.Model
	if name != "" && !slices.Contains(m.names(), name) {
		return nil, api.UnknownModel(name)
	}
	return m, nil
}
