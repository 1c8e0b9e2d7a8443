package tokenizer

import (
	"errors"
	"fmt"
	"slices"
)

// Files are the texts of a checkpoint's tokenizer files; nil where there is none.
type Files struct {
	Tokenizer        []byte // tokenizer.json
	Config           []byte // tokenizer_config.json
	SpecialTokensMap []byte // special_tokens_map.json
	AddedTokens      []byte // added_tokens.json
	Vocab, Merges    []byte // vocab.json and merges.txt, where there is no tokenizer.json
	SentencePiece    []byte // tokenizer.model, where there is neither
	ModelType        string // config.json's: says how the words of a vocab.json are cut
	Rows             int    // ids that the model has; 0: not known
}

// parts are what a tokenizer is assembled of, whatever file says it.
type parts struct {
	file          string // that the vocabulary is of, for errors
	vocabulary    vocabulary
	merges        []merge
	added         []addedToken
	pipeline      pipeline
	model         bpe
	postProcessor *component
	bos, eos      int32 // -1: none
	addBOS        bool
	notes         []string
}

// FromFiles makes a tokenizer of a checkpoint's files. What they leave open, and was assumed, is in its Notes.
func FromFiles(f Files) (*Tokenizer, error) {
	s, err := readSettings(&f)
	if err != nil {
		return nil, err
	}
	var p *parts
	switch {
	case f.Tokenizer != nil:
		if p, err = fromJSON(f.Tokenizer); err != nil {
			return nil, fmt.Errorf("tokenizer.json: %w", err)
		}
		p.file = "tokenizer.json"
	case f.Vocab != nil && f.Merges != nil:
		if p, err = fromVocab(&f, s); err != nil {
			return nil, err
		}
		p.file = "vocab.json"
	case f.SentencePiece != nil:
		if p, err = fromSentencePiece(f.SentencePiece, s); err != nil {
			return nil, fmt.Errorf("tokenizer.model: %w", err)
		}
		p.file = "tokenizer.model"
	case f.Vocab != nil:
		return nil, errors.New("vocab.json needs merges.txt beside it, or a tokenizer.json (save the tokenizer again with transformers)")
	default:
		return nil, errors.New("the checkpoint has no tokenizer.json, vocab.json with merges.txt, or tokenizer.model (copy them from the model it was made from)")
	}
	t, err := p.tokenizer(s, f.Rows)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// FromJSON makes a tokenizer of the contents of tokenizer.json and, unless nil, tokenizer_config.json.
func FromJSON(tokenizerJSON []byte, tokenizerConfigJSON []byte) (*Tokenizer, error) {
	return FromFiles(Files{Tokenizer: tokenizerJSON, Config: tokenizerConfigJSON})
}

// tokenizer assembles the parts with what the other files say.
func (p *parts) tokenizer(s *settings, rows int) (*Tokenizer, error) {
	s.addDefaults(p)
	added := s.complete(p, rows)
	if err := p.vocabulary.checkDense(); err != nil {
		return nil, fmt.Errorf("%s: vocabulary: %w", p.file, err)
	}
	t, err := assemble(p.vocabulary, added, p.pipeline, p.model, p.merges)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.file, err)
	}
	t.bos, t.eos, t.addBOS = p.bos, p.eos, p.addBOS
	if err := t.postProcessor(p.postProcessor); err != nil {
		return nil, fmt.Errorf("%s: post_processor: %w", p.file, err)
	}
	t.configure(s)
	t.notes = append(append(p.notes, t.vocabulary.odd.notes()...), s.notes...)
	return t, nil
}

// addDefaults names the tokens that transformers' class of the tokenizer has where no file says, if the vocabulary has them.
func (s *settings) addDefaults(p *parts) {
	const text = "<|endoftext|>"
	var defaults []namedToken
	add := func(name, content string) {
		_, known := p.vocabulary.ids[content]
		known = known || slices.ContainsFunc(slices.Concat(p.added, s.decoder), func(t addedToken) bool { return t.content == content })
		if _, said := s.token(name); !said && known {
			defaults = append(defaults, namedToken{name, addedToken{content: content, special: true}})
		}
	}
	switch {
	case s.class == "Qwen2Tokenizer":
		add("eos_token", text)
		add("unk_token", text)
		add("pad_token", text)
	case s.class == "GPT2Tokenizer":
		add("bos_token", text)
		add("eos_token", text)
		add("unk_token", text)
	case s.class == "LlamaTokenizer" && !p.pipeline.byteLevel:
		add("bos_token", "<s>")
		add("eos_token", "</s>")
		add("unk_token", "<unk>")
	}
	s.named = append(s.named, defaults...)
}
