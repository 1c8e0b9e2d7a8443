package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// Text is how a model reads and writes: its tokenizer, its chat template, and the tokens that end an answer.
type Text struct {
	Tokenizer *tokenizer.Tokenizer // made from the checkpoint's files
	Template  *chat.Template       // of conversations; nil where the model has none
	Source    string               // what Template was read from
	End       []int32              // ids of the tokens that end an answer
	Defaults  Defaults             // sampling where a request says nothing
	From      string               // what Defaults was read from
	Facts     []Facts              // beside the checkpoint, as Learn has them
	Policy    Policy               // of whoever runs the server
	Variables *jsontree.Object     // of the template, where a request does not set them
	Tools     Setting              // the format of calls, or NoFormat; see Learn
	Reasoning Setting              // the format of thoughts, or NoFormat
	Notes     []string             // what was assumed about the files and may be wrong: one line each, for a log
	Details   []string             // what was added to the files, or has no effect, and harms nothing: likewise
	Name      string               // that a GGUF file gives its model; "" where there is none

	shown chat.Shown
}

// Prompt renders a conversation and gives its text and tokens, at most limit; more are a *tokenizer.TooLong. What came from the
// request is text, never control. The work ends soon after ctx does.
func (t *Text) Prompt(ctx context.Context, request *chat.Request, now time.Time, limit int) (completion.Prompt, error) {
	var none completion.Prompt
	if t.Template == nil {
		return none, errors.New("this model has no chat template (use /v1/completions)")
	}
	r := *request
	r.Defaults = t.Variables
	p, err := t.Template.Prompt(ctx, &r, now)
	if err != nil {
		return none, err
	}
	data := make([]tokenizer.Range, len(p.Data))
	for i, r := range p.Data {
		data[i] = tokenizer.Range(r)
	}
	tokens, err := t.Tokenizer.EncodePromptWithin(ctx, p.Text, data, limit)
	if err != nil {
		return none, err
	}
	return completion.Prompt{Tokens: tokens, Text: p.Text, Data: p.Data}, nil
}

// OpenText reads a checkpoint's tokenizer and what goes with it. What the files leave open, and was assumed, is in Notes.
func OpenText(c weights.Checkpoint) (*Text, error) {
	assets, err := c.Assets()
	if err != nil {
		return nil, err
	}
	t := &Text{Name: assets.Name, Details: unreadAssets(assets)}
	if t.Tokenizer, err = openTokenizer(c, assets); err != nil {
		return nil, err
	}
	t.Notes = t.Tokenizer.Notes()
	var note string
	if t.Source, note, err = chatTemplate(assets, t.Tokenizer); err != nil {
		return nil, err
	}
	t.note(note)
	if t.Source != "" {
		if t.Template, err = chat.ParseTemplate(t.Source, specialTokens(t.Tokenizer)); err != nil {
			return nil, fmt.Errorf("the checkpoint's chat template cannot be used (--chat-template takes another): %w", err)
		}
	}
	t.From = generationFile
	if assets.Vocabulary != nil {
		t.From = generationKeys
	}
	generation, notes := parseGeneration(t.From, assets.GenerationConfig)
	t.note(notes...)
	t.Defaults = generation.Defaults
	return t, t.findEnds(c, assets, generation.ends)
}

// note keeps lines that are not empty.
func (t *Text) note(lines ...string) {
	for _, line := range lines {
		if line != "" {
			t.Notes = append(t.Notes, line)
		}
	}
}

// Generator answers requests in text with an engine that runs this model.
func (t *Text) Generator(e completion.Engine, l *Loaded) *completion.Generator {
	g := t.Reader()
	g.Engine, g.MaxContext, g.Vocab = e, l.Sizes.MaxContext, l.Layout.Vocab
	return g
}

// Reader is a generator without an engine: it reads answers that are there.
func (t *Text) Reader() *completion.Generator {
	g := &completion.Generator{Tokenizer: t.Tokenizer, End: t.End, Defaults: t.Params(), Plain: t.Plain(), Formats: t.formats(), Thinking: t.thinkingPolicy(), ToolTokens: t.Policy.ToolTokens, Notation: t.Policy.Notation}
	if t.Template != nil {
		g.Efforts = t.Template.Capabilities().Efforts
	}
	return g
}
