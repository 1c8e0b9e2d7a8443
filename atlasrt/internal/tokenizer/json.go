package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// tokenizerJSON is a tokenizer.json, as HuggingFace's tokenizers library writes it.
type tokenizerJSON struct {
	AddedTokens   []addedTokenJSON `json:"added_tokens"`
	Normalizer    *component       `json:"normalizer"`
	PreTokenizer  *component       `json:"pre_tokenizer"`
	PostProcessor *component       `json:"post_processor"`
	Decoder       *component       `json:"decoder"`
	Model         modelJSON        `json:"model"`
}

type addedTokenJSON struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	Normalized bool   `json:"normalized"`
	LeftStrip  bool   `json:"lstrip"`
	RightStrip bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
}

type modelJSON struct {
	Type          string          `json:"type"`
	Dropout       float64         `json:"dropout"`
	UnknownToken  *string         `json:"unk_token"`
	SubwordPrefix string          `json:"continuing_subword_prefix"`
	WordSuffix    string          `json:"end_of_word_suffix"`
	FuseUnknown   bool            `json:"fuse_unk"`
	ByteFallback  bool            `json:"byte_fallback"`
	IgnoreMerges  bool            `json:"ignore_merges"`
	Vocabulary    json.RawMessage `json:"vocab"`
	Merges        json.RawMessage `json:"merges"`
}

// fromJSON reads a tokenizer.json.
func fromJSON(data []byte) (*parts, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%d bytes: at most %d are allowed", len(data), maxFileBytes)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	var file tokenizerJSON
	if err := json.Unmarshal(data, &file); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("%s is of type %s, which no tokenizer of transformers has there (get the file again)", cmp.Or(wrong.Field, "the whole"), wrong.Value)
		}
		return nil, err
	}
	model := file.Model
	switch {
	case model.Type != "BPE" && model.Type != "":
		return nil, fmt.Errorf("model: type %q is not supported (want BPE)", model.Type)
	case model.Dropout != 0 || model.SubwordPrefix != "" || model.WordSuffix != "":
		return nil, errors.New("model: dropout, continuing_subword_prefix and end_of_word_suffix are not supported")
	}
	out := &parts{bos: -1, eos: -1, postProcessor: file.PostProcessor}
	p := &out.pipeline
	if err := p.normalizer(file.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if err := p.preTokenizer(file.PreTokenizer); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if note, err := p.decode(file.Decoder); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	} else if note != "" {
		out.notes = append(out.notes, "tokenizer.json: "+note)
	}
	v, err := readVocabulary(model.Vocabulary)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if out.merges, err = v.readMerges(model.Merges); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	out.model = bpe{byteFallback: model.ByteFallback, fuseUnknown: model.FuseUnknown, ignoreMerges: model.IgnoreMerges, unknown: -1}
	if name := model.UnknownToken; name != nil && *name != "" {
		if id, ok := v.ids[*name]; ok {
			out.model.unknown = id
		} else {
			out.notes = append(out.notes, fmt.Sprintf("tokenizer.json: unk_token %.40q is no token: what has no token is left out", *name))
		}
	}
	for _, a := range file.AddedTokens {
		if a.ID < 0 || a.ID >= maxTokens {
			return nil, fmt.Errorf("added_tokens: %.40q has id %d: ids are 0 to %d", a.Content, a.ID, maxTokens-1)
		}
		out.added = append(out.added, addedToken{
			id: int32(a.ID), content: a.Content, special: a.Special, normalized: a.Normalized,
			leftStrip: a.LeftStrip, rightStrip: a.RightStrip, singleWord: a.SingleWord,
		})
	}
	out.vocabulary = v
	return out, nil
}
