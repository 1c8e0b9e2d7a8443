package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// GGUF is the tokenizer of a GGUF file: the values of its tokenizer.ggml.* keys and tokenizer.chat_template. A nil
// pointer or slice, or an empty string, stands for a key that is absent.
type GGUF struct {
	Model          string // "gpt2": byte-level BPE; "llama": SentencePiece BPE
	Pre            string // the name of the pre-tokenizer, for gpt2
	Tokens         []string
	Scores         []float32 // for llama: a higher one merges first
	TokenTypes     []int32
	Merges         []string // for gpt2: "left right", by rank
	BOS, EOS       *uint32
	Unknown        *uint32
	Padding        *uint32 // checked only: batches here have no padding
	AddBOS, AddEOS *bool
	AddSpacePrefix *bool
	ChatTemplate   string
}

// Token types of GGUF that mean something here.
const (
	tokenNormal      = 1
	tokenUnknown     = 2
	tokenControl     = 3
	tokenUserDefined = 4
	tokenByte        = 6
)

// preTokenizer is what the name of a GGUF pre-tokenizer stands for.
type preTokenizer struct {
	patterns     []string
	nfc          bool // the file does not say so, but the model was trained so
	ignoreMerges bool
	addBOS       bool // unless the file says otherwise
}

func namedPreTokenizer(name string) (preTokenizer, error) {
	switch name {
	case "", "default", "gpt-2":
		return preTokenizer{patterns: []string{gpt2Text}}, nil
	case "smollm":
		return preTokenizer{patterns: []string{oneDigitText, gpt2Text}}, nil
	case "qwen2":
		return preTokenizer{patterns: []string{qwen2Text}, nfc: true}, nil
	case "qwen35":
		return preTokenizer{patterns: []string{qwen35Text}, nfc: true}, nil
	case "llama-bpe":
		return preTokenizer{patterns: []string{llama3Text}, ignoreMerges: true, addBOS: true}, nil
	case "tekken":
		return preTokenizer{patterns: []string{tekkenText}, ignoreMerges: true, addBOS: true}, nil
	case "gpt-4o":
		return preTokenizer{patterns: []string{o200kText}, ignoreMerges: true}, nil
	case "minimax-m2":
		return preTokenizer{patterns: []string{o200kText}}, nil
	case "deepseek-v3":
		return preTokenizer{patterns: []string{threeDigitsText, hanKanaText, deepseekText}}, nil
	}
	return preTokenizer{}, fmt.Errorf("tokenizer.ggml.pre %q is not supported", name)
}

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
	v := vocabulary{ids: make(map[string]int32, min(len(meta.Tokens), maxTokens))}
	var added []addedToken
	for id, token := range meta.Tokens {
		if token == "" || !utf8.ValidString(token) {
			return nil, fmt.Errorf("token %d is empty or not UTF-8: %.40q", id, token)
		}
		if err := v.add(token, int64(id)); err != nil {
			return nil, err
		}
		switch kind := meta.tokenType(id); kind {
		case tokenControl, tokenUserDefined:
			added = append(added, addedToken{id: int32(id), content: token, special: kind == tokenControl})
		case tokenUnknown:
			v.special[id] = true
		}
	}
	var t *Tokenizer
	var err error
	addBOS := false
	switch meta.Model {
	case "gpt2":
		t, addBOS, err = byteLevelGGUF(meta, v, added)
	case "llama":
		t, err = sentencePieceGGUF(meta, v, added)
		addBOS = true
	default:
		err = fmt.Errorf("tokenizer.ggml.model %q is not supported (want gpt2 or llama)", meta.Model)
	}
	if err != nil {
		return nil, err
	}
	if t.bos, err = meta.tokenID("bos", meta.BOS); err != nil {
		return nil, err
	}
	if t.eos, err = meta.tokenID("eos", meta.EOS); err != nil {
		return nil, err
	}
	if _, err = meta.tokenID("padding", meta.Padding); err != nil {
		return nil, err
	}
	t.addBOS = meta.AddBOS != nil && *meta.AddBOS || meta.AddBOS == nil && addBOS
	t.addEOS = meta.AddEOS != nil && *meta.AddEOS
	if meta.ChatTemplate != "" {
		t.templates = map[string]string{"default": meta.ChatTemplate}
	}
	return t, nil
}

func (meta *GGUF) tokenType(id int) int32 {
	if meta.TokenTypes == nil {
		return tokenNormal
	}
	return meta.TokenTypes[id]
}

// tokenID is -1 for an absent key.
func (meta *GGUF) tokenID(key string, id *uint32) (int32, error) {
	switch {
	case id == nil:
		return -1, nil
	case int64(*id) >= int64(len(meta.Tokens)):
		return 0, fmt.Errorf("tokenizer.ggml.%s_token_id is %d: there are %d tokens", key, *id, len(meta.Tokens))
	}
	return int32(*id), nil
}

func byteLevelGGUF(meta *GGUF, v vocabulary, added []addedToken) (t *Tokenizer, addBOS bool, err error) {
	pre, err := namedPreTokenizer(meta.Pre)
	if err != nil {
		return nil, false, err
	}
	p := pipeline{byteLevel: true, decoder: decoder{byteLevel: true}}
	for _, pattern := range pre.patterns {
		p.addScanner(pattern)
	}
	if pre.nfc {
		p.normalizers = []normalizer{unicodeNormalizer(norm.NFC)}
	}
	if meta.AddSpacePrefix != nil && *meta.AddSpacePrefix {
		p.stages = append([]stage{prefixStage{}}, p.stages...)
	}
	merges := make([]merge, len(meta.Merges))
	for rank, both := range meta.Merges {
		left, right, ok := strings.Cut(both, " ")
		if !ok {
			return nil, false, fmt.Errorf("merges: number %d, %.40q, is not two tokens with a blank between", rank, both)
		}
		if merges[rank], err = v.merge(left, right, rank); err != nil {
			return nil, false, err
		}
	}
	t, err = assemble(v, added, p, bpe{ignoreMerges: pre.ignoreMerges, unknown: -1}, merges)
	return t, pre.addBOS, err
}

// sentencePieceGGUF makes merges of scores: SentencePiece joins the neighbours that make the token of the highest score.
func sentencePieceGGUF(meta *GGUF, v vocabulary, added []addedToken) (*Tokenizer, error) {
	if meta.Scores == nil {
		return nil, errors.New("tokenizer.ggml.scores is absent")
	}
	unknown, err := meta.tokenID("unknown", meta.Unknown)
	if err != nil {
		return nil, err
	}
	p := pipeline{
		normalizers: []normalizer{replaceNormalizer{literal(" "), metaspace}},
		decoder: decoder{
			byteFallback: true,
			rewrite:      []func(string) string{func(s string) string { return strings.ReplaceAll(s, metaspace, " ") }},
		},
	}
	if meta.AddSpacePrefix == nil || *meta.AddSpacePrefix {
		p.normalizers = append([]normalizer{prependNormalizer(metaspace)}, p.normalizers...)
		p.decoder.stripContent, p.decoder.stripStart = ' ', 1
	}
	merges, err := meta.scoredMerges(&v)
	if err != nil {
		return nil, err
	}
	return assemble(v, added, p, bpe{byteFallback: true, fuseUnknown: true, unknown: unknown}, merges)
}

// scoredMerges is every way to make a token of two others. Tokens of one score share a rank: the leftmost goes first.
func (meta *GGUF) scoredMerges(v *vocabulary) ([]merge, error) {
	byScore := make([]int32, 0, len(meta.Tokens))
	plain := func(id int32) bool {
		kind := meta.tokenType(int(id))
		return kind == tokenNormal || kind == tokenUserDefined
	}
	for id, score := range meta.Scores {
		if score != score {
			return nil, fmt.Errorf("the score of token %d is not a number", id)
		}
		if plain(int32(id)) {
			byScore = append(byScore, int32(id))
		}
	}
	slices.SortStableFunc(byScore, func(a, b int32) int { return cmp.Compare(meta.Scores[b], meta.Scores[a]) })
	var merges []merge
	rank := int32(0)
	for i, id := range byScore {
		if i > 0 && meta.Scores[id] != meta.Scores[byScore[i-1]] {
			rank++
		}
		token := v.tokens[id]
		if len(token) > maxScoredBytes {
			return nil, fmt.Errorf("token %.40q… has %d bytes: at most %d are allowed here", token, len(token), maxScoredBytes)
		}
		for at := range token {
			left, leftOK := v.ids[token[:at]]
			right, rightOK := v.ids[token[at:]]
			if at > 0 && leftOK && rightOK && plain(left) && plain(right) {
				merges = append(merges, merge{left, right, rank, id})
			}
		}
		if len(merges) > maxMerges {
			return nil, fmt.Errorf("the tokens can be joined in more than %d ways", maxMerges)
		}
	}
	return merges, nil
}

// maxScoredBytes bounds the time it takes to cut a token in two in every way.
const maxScoredBytes = 1 << 10
