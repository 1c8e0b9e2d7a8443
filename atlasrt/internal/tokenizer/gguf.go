package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// GGUF is the tokenizer of a GGUF file: the values of its tokenizer.ggml.* keys and tokenizer.chat_template. A nil
// pointer or slice, or an empty string, stands for a key that is absent.
type GGUF struct {
	Model          string    // "gpt2": byte-level BPE; "llama": SentencePiece BPE
	Pre            string    // the name of the pre-tokenizer, for gpt2; see preTokenizers
	Tokens         []string  // by id
	Scores         []float32 // for llama: a higher one merges first
	TokenTypes     []int32   // by id: llama_token_type of llama.cpp
	Merges         []string  // "left right", by rank; for llama where there are no scores
	BOS, EOS       *uint32   // ids of the tokens that begin and end a text
	Unknown        *uint32   // id of the token for text that has no other
	Padding        *uint32   // id of the padding token
	Separator      *uint32   // id of the token between two texts
	Class, Mask    *uint32   // ids of BERT's tokens
	EOT, EOM       *uint32   // ids of the tokens that end a turn and a message
	AddBOS, AddEOS *bool     // whether texts get BOS and EOS
	AddSpacePrefix *bool     // whether a space goes before a text
	ChatTemplate   string    // its source
}

// Token types of GGUF that mean something here.
const (
	tokenNormal      = 1
	tokenUnknown     = 2
	tokenControl     = 3
	tokenUserDefined = 4
	tokenByte        = 6
)

// FromGGUF makes a tokenizer of a GGUF file's metadata.
func FromGGUF(meta GGUF) (*Tokenizer, error) {
	t, err := fromGGUF(&meta)
	if err != nil {
		return nil, fmt.Errorf("GGUF tokenizer: %w", err)
	}
	return t, nil
}

func fromGGUF(meta *GGUF) (*Tokenizer, error) {
	if n := len(meta.Tokens); meta.TokenTypes != nil && len(meta.TokenTypes) != n || meta.Scores != nil && len(meta.Scores) != n {
		return nil, fmt.Errorf("%d tokens, %d token types, %d scores: want as many of each", n, len(meta.TokenTypes), len(meta.Scores))
	}
	p := &parts{bos: -1, eos: -1}
	if err := meta.readTokens(p); err != nil {
		return nil, err
	}
	var err error
	switch meta.Model {
	case "gpt2":
		err = meta.byteLevel(p)
	case "llama":
		err = meta.sentencePiece(p)
	default:
		err = fmt.Errorf("tokenizer.ggml.model %q is not supported (want gpt2 or llama)", meta.Model)
	}
	if err != nil {
		return nil, err
	}
	t, err := assemble(p.vocabulary, p.added, p.pipeline, p.model, p.merges)
	if err != nil {
		return nil, err
	}
	t.notes = append(p.notes, t.vocabulary.odd.notes()...)
	t.bos, t.eos = meta.tokenID(meta.BOS), meta.tokenID(meta.EOS)
	t.addBOS = meta.AddBOS != nil && *meta.AddBOS || meta.AddBOS == nil && p.addBOS
	t.addEOS = meta.AddEOS != nil && *meta.AddEOS
	if meta.ChatTemplate != "" {
		t.templates = chatTemplates{defaultTemplate: meta.ChatTemplate}
	}
	meta.nameTokens(t)
	return t, nil
}

// readTokens enters the tokens. Of doubled ones, texts get the last that is no control token.
func (meta *GGUF) readTokens(p *parts) error {
	v := &p.vocabulary
	v.ids = make(map[string]int32, min(len(meta.Tokens), maxTokens))
	var mended []string
	for id, token := range meta.Tokens {
		kind := meta.tokenType(id)
		if kind == tokenNormal && (isControl(token) || meta.frames(id, token)) {
			kind = tokenControl
			mended = append(mended, fmt.Sprintf("%.40q (%d)", token, id))
		}
		old, doubled := v.ids[token]
		if err := v.add(token, int64(id)); err != nil {
			return err
		}
		if doubled && kind == tokenControl && meta.tokenType(int(old)) != tokenControl {
			v.ids[token] = old
		}
		switch kind {
		case tokenControl, tokenUserDefined:
			p.added = append(p.added, addedToken{id: int32(id), content: token, special: kind == tokenControl})
		case tokenUnknown:
			v.special[id] = true
		}
	}
	if n := len(mended); n > 0 {
		p.notes = append(p.notes, fmt.Sprintf("tokens of type normal are taken as control tokens by their text: %s%s", strings.Join(mended[:min(n, mostNamed)], ", "), andMore(n-mostNamed)))
	}
	return nil
}

// mostNamed bounds the tokens that a note names.
const mostNamed = 8

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// frames says whether the metadata name a token as one that begins or ends texts or turns, and it is written as such.
func (meta *GGUF) frames(id int, token string) bool {
	if !strings.HasPrefix(token, "<") || !strings.HasSuffix(token, ">") {
		return false
	}
	return slices.ContainsFunc([]*uint32{meta.BOS, meta.EOS, meta.EOT, meta.EOM}, func(named *uint32) bool { return named != nil && int64(*named) == int64(id) })
}

// isControl says whether a token controls the model by its text, which no other text is likely to spell. Some files give it
// the wrong type, or none to any token; llama.cpp mends those that end turns as well.
func isControl(token string) bool {
	switch token {
	case "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|im_start|>", "<start_of_turn>", "<｜begin▁of▁sentence｜>":
		return true
	case "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>", "<end_of_utterance>", "<｜end▁of▁sentence｜>":
		return true
	}
	return false
}

// nameTokens gives templates the tokens that the metadata names.
func (meta *GGUF) nameTokens(t *Tokenizer) {
	named := []struct {
		name string
		id   *uint32
	}{
		{"bos_token", meta.BOS}, {"eos_token", meta.EOS}, {"unk_token", meta.Unknown}, {"sep_token", meta.Separator}, {"pad_token", meta.Padding},
		{"cls_token", meta.Class}, {"mask_token", meta.Mask}, {"eot_token", meta.EOT}, {"eom_token", meta.EOM},
	}
	for _, n := range named {
		if id := meta.tokenID(n.id); id >= 0 && meta.Tokens[id] != "" {
			t.named = append(t.named, SpecialToken{Name: n.name, Texts: []string{meta.Tokens[id]}})
		}
	}
}

func (meta *GGUF) tokenType(id int) int32 {
	if meta.TokenTypes == nil {
		return tokenNormal
	}
	return meta.TokenTypes[id]
}

// tokenID is -1 for an absent key and for the id of no token.
func (meta *GGUF) tokenID(id *uint32) int32 {
	if id == nil || int64(*id) >= int64(len(meta.Tokens)) {
		return -1
	}
	return int32(*id)
}

func (meta *GGUF) byteLevel(parts *parts) error {
	pre, note, err := meta.preTokenizer()
	if err != nil {
		return err
	}
	if note != "" {
		parts.notes = append(parts.notes, note)
	}
	p := &parts.pipeline
	p.byteLevel, p.decoder = true, decoder{byteLevel: true}
	for _, pattern := range pre.patterns {
		m, name, err := p.regex(pattern)
		if err != nil {
			return fmt.Errorf("tokenizer.ggml.pre %q: %w", meta.Pre, err)
		}
		p.stages = append(p.stages, splitStage{pattern: m, behavior: isolated})
		p.splitters = append(p.splitters, name)
	}
	if pre.nfc {
		p.normalizers = []normalizer{unicodeNormalizer(norm.NFC)}
	}
	if meta.AddSpacePrefix != nil && *meta.AddSpacePrefix {
		p.stages = append([]stage{prefixStage{}}, p.stages...)
	}
	parts.model = bpe{ignoreMerges: pre.ignoreMerges, unknown: -1}
	parts.addBOS = pre.addBOS
	return meta.readMerges(parts)
}

// readMerges reads "left right"; what is no such pair counts as odd.
func (meta *GGUF) readMerges(p *parts) (err error) {
	for rank, both := range meta.Merges {
		left, right, _ := strings.Cut(both, " ")
		if p.merges, err = p.vocabulary.merge(p.merges, left, right, rank); err != nil {
			return err
		}
	}
	return nil
}

// sentencePiece makes merges of scores: SentencePiece joins the neighbours that make the token of the highest score.
func (meta *GGUF) sentencePiece(parts *parts) (err error) {
	p := &parts.pipeline
	p.normalizers = []normalizer{replaceNormalizer{literal(" "), metaspace}}
	p.decoder = decoder{
		byteFallback: true,
		rewrite:      []func(string) string{func(s string) string { return strings.ReplaceAll(s, metaspace, " ") }},
	}
	if meta.AddSpacePrefix == nil || *meta.AddSpacePrefix {
		p.normalizers = append([]normalizer{prependNormalizer(metaspace)}, p.normalizers...)
		p.decoder.stripContent, p.decoder.stripStart = ' ', 1
	}
	parts.model = bpe{byteFallback: true, fuseUnknown: true, unknown: meta.tokenID(meta.Unknown)}
	parts.addBOS = true
	switch {
	case meta.Scores != nil:
		parts.merges, err = meta.scoredMerges(&parts.vocabulary)
	case meta.Merges != nil:
		parts.notes = append(parts.notes, "tokenizer.ggml.scores is absent: the file's merges are used")
		err = meta.readMerges(parts)
	default:
		parts.notes = append(parts.notes, "tokenizer.ggml.scores is absent: tokens are taken to be in the order of their scores, as SentencePiece writes them")
		ordered := *meta
		for id := range meta.Tokens {
			ordered.Scores = append(ordered.Scores, -float32(id))
		}
		parts.merges, err = ordered.scoredMerges(&parts.vocabulary)
	}
	return err
}
