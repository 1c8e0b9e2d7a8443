package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// Text is how a model reads and writes: its tokenizer, its chat template, and the tokens that end an answer.
type Text struct {
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // of conversations; nil where the model has none
	End       []int32
	Defaults  Defaults
	Preset    Preset // of values that Defaults does not have
}

// Prompt renders a conversation and gives its tokens, at most limit; more are a *tokenizer.TooLong. What came from the
// request is text, never control. The work ends soon after ctx does.
func (t *Text) Prompt(ctx context.Context, request *chat.Request, now time.Time, limit int) ([]int32, error) {
	if t.Template == nil {
		return nil, errors.New("this model has no chat template (use /v1/completions)")
	}
	p, err := t.Template.Prompt(ctx, request, now)
	if err != nil {
		return nil, err
	}
	data := make([]tokenizer.Range, len(p.Data))
	for i, r := range p.Data {
		data[i] = tokenizer.Range(r)
	}
	return t.Tokenizer.EncodePromptWithin(ctx, p.Text, data, limit)
}

// Defaults are what a checkpoint's generation_config.json says about sampling; nil where it says nothing.
type Defaults struct {
	Temperature       *float32 `json:"temperature"`
	TopP              *float32 `json:"top_p"`
	TopK              *int32   `json:"top_k"`
	MinP              *float32 `json:"min_p"`
	RepetitionPenalty *float32 `json:"repetition_penalty"`
	Sample            *bool    `json:"do_sample"`
}

// Params are a request's sampling where it says nothing itself.
func (d Defaults) Params() sample.Params {
	p := sample.Defaults()
	if d.Sample != nil && !*d.Sample {
		p = sample.Greedy()
	}
	set(&p.Temperature, d.Temperature)
	set(&p.TopP, d.TopP)
	set(&p.TopK, d.TopK)
	set(&p.MinP, d.MinP)
	set(&p.RepetitionPenalty, d.RepetitionPenalty)
	return p
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// OpenText reads a checkpoint's tokenizer and what goes with it.
func OpenText(c weights.Checkpoint) (*Text, error) {
	assets, err := c.Assets()
	if err != nil {
		return nil, err
	}
	t := &Text{}
	switch {
	case assets.Tokenizer != nil:
		t.Tokenizer, err = tokenizer.FromJSON(assets.Tokenizer, assets.TokenizerConfig)
	case assets.Vocabulary != nil:
		t.Tokenizer, err = tokenizer.FromGGUF(ggufTokenizer(assets.Vocabulary))
	default:
		err = errors.New("the checkpoint has no tokenizer.json")
	}
	if err != nil {
		return nil, err
	}
	source := string(assets.ChatTemplate)
	if source == "" {
		source = t.Tokenizer.ChatTemplate()
	}
	if source != "" {
		if t.Template, err = chat.ParseTemplate(source, specialTokens(t.Tokenizer)); err != nil {
			return nil, fmt.Errorf("the checkpoint's chat template: %w", err)
		}
	}
	if assets.GenerationConfig != nil {
		if err := json.Unmarshal(assets.GenerationConfig, &t.Defaults); err != nil {
			return nil, fmt.Errorf("generation_config.json: %w", err)
		}
	}
	if t.End, err = endTokens(c, assets, t.Tokenizer); err != nil {
		return nil, err
	}
	return t, nil
}

// specialTokens are those that templates write by name.
func specialTokens(tok *tokenizer.Tokenizer) []chat.SpecialToken {
	var special []chat.SpecialToken
	if id, ok := tok.BOS(); ok {
		special = append(special, chat.SpecialToken{Variable: "bos_token", Text: tok.Decode([]int32{id}, false)})
	}
	if id, ok := tok.EOS(); ok {
		special = append(special, chat.SpecialToken{Variable: "eos_token", Text: tok.Decode([]int32{id}, false)})
	}
	return special
}

// endTokens gathers what ends an answer: the lists of generation_config.json and config.json, the tokenizer's own, and
// the end-of-turn tokens that a GGUF file names.
func endTokens(c weights.Checkpoint, assets weights.Assets, tok *tokenizer.Tokenizer) ([]int32, error) {
	var end []int32
	add := func(ids ...int) {
		for _, id := range ids {
			if id >= 0 && id < tok.VocabSize() && !slices.Contains(end, int32(id)) {
				end = append(end, int32(id))
			}
		}
	}
	if assets.GenerationConfig != nil {
		generation, err := weights.ParseConfig("generation_config.json", assets.GenerationConfig)
		if err != nil {
			return nil, err
		}
		add(generation.Ints("eos_token_id")...)
	}
	config := c.Config()
	add(config.Ints("eos_token_id")...)
	if id, ok := tok.EOS(); ok {
		add(int(id))
	}
	if v := assets.Vocabulary; v != nil {
		add(v.EOS, v.EOT, v.EOM)
	}
	return end, config.Err()
}

// ggufTokenizer hands a GGUF file's vocabulary to the tokenizer.
func ggufTokenizer(v *weights.Vocabulary) tokenizer.GGUF {
	id := func(n int) *uint32 {
		if n < 0 {
			return nil
		}
		u := uint32(n)
		return &u
	}
	g := tokenizer.GGUF{
		Model: v.Model, Pre: v.Pre, Tokens: v.Tokens, Scores: v.Scores, Merges: v.Merges, ChatTemplate: v.ChatTemplate,
		BOS: id(v.BOS), EOS: id(v.EOS), Unknown: id(v.Unknown), Padding: id(v.Padding),
		AddBOS: v.AddBOS, AddEOS: v.AddEOS, AddSpacePrefix: v.AddSpacePrefix,
	}
	for _, t := range v.Types {
		g.TokenTypes = append(g.TokenTypes, int32(t))
	}
	return g
}

// Generator answers requests in text with an engine that runs this model.
func (t *Text) Generator(e completion.Engine, l *Loaded) *completion.Generator {
	return &completion.Generator{Engine: e, Tokenizer: t.Tokenizer, End: t.End, MaxContext: l.Sizes.MaxContext, Vocab: l.Layout.Vocab}
}
