package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// Text is how a model reads and writes: its tokenizer, its chat template, and the tokens that end an answer.
type Text struct {
	Tokenizer *tokenizer.Tokenizer
	Template  string // of chats; empty where the model has none
	End       []int32
	Defaults  Defaults
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
	t.Template = string(assets.ChatTemplate)
	if t.Template == "" {
		t.Template = t.Tokenizer.ChatTemplate()
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
		AddBOS: &v.AddBOS, AddEOS: &v.AddEOS, AddSpacePrefix: &v.AddSpacePrefix,
	}
	for _, t := range v.Types {
		g.TokenTypes = append(g.TokenTypes, int32(t))
	}
	return g
}
