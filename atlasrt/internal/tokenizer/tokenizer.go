// Package tokenizer turns text into a model's tokens and back, with the rules of a HuggingFace tokenizer.json or of
// the tokenizer in a GGUF file: byte-level BPE, and SentencePiece-style BPE with byte fallback.
//
//   - It gives the ids that HuggingFace's tokenizers library gives.
//   - Text that is marked as data never becomes a token that controls the model.
//   - A file with a part that is not known here is refused by that part's name; none can make it panic.
//   - Time is linear, or n log n, in the text. Patterns without a hand-written scanner have bounds instead.
//   - A Tokenizer does not change: any number of goroutines may share it. A Detokenizer serves one.
package tokenizer

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Tokenizer encodes and decodes for one vocabulary.
type Tokenizer struct {
	vocabulary  vocabulary
	added       *addedMatcher // found in the text as it came
	normalized  *addedMatcher // found in normalized text
	normalizers []normalizer
	stages      []stage
	splitter    string // names what cuts text into words: scanners by name, other patterns as "regexp2" and their text
	model       bpe
	decoder     decoder
	pieces      pieceTable
	bound       bound

	bos, eos       int32 // -1: none
	addBOS, addEOS bool
	before         []int32 // what the post-processor puts before a text; bos where it has one token
	templates      chatTemplates
	named          []SpecialToken
	notes          []string
}

// Encode returns the tokens of text. Where special is true, special and other added tokens are found in the text;
// otherwise all of it is data, as for EncodePromptWithin. No bos is added. Text on which a pattern takes too long counts as not matched.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	return must(t.encode(nil, text, dataUnless(special, text), math.MaxInt))
}

// EncodeWithin is Encode for texts from strangers. It ends soon after ctx does, with the cause, as soon as it is
// certain that there are more than limit tokens, with a *TooLong, and where a pattern takes too long, with an *Intractable.
func (t *Tokenizer) EncodeWithin(ctx context.Context, text string, special bool, limit int) ([]int32, error) {
	return t.encode(&watch{ctx: ctx}, text, dataUnless(special, text), limit)
}

// dataUnless is the part of a text that is data: all of it, or none where special tokens are found in it.
func dataUnless(special bool, text string) []Range {
	if special {
		return nil
	}
	return clip([]Range{{0, len(text)}}, 0, len(text))
}

// EncodePromptWithin returns the tokens of a rendered prompt. data says which bytes came from users: no added token,
// special or not, is found where it would take in one of them, unless the token is mere white space. Otherwise the text is
// encoded as a whole, with no seam where data begins or ends. Ranges may come in any order, overlap, or go over the ends.
// It ends as EncodeWithin does.
func (t *Tokenizer) EncodePromptWithin(ctx context.Context, text string, data []Range, limit int) ([]int32, error) {
	whole := clip(data, 0, len(text))
	for i := range whole { // a code point with one byte of data is data
		for whole[i].Start > 0 && !utf8.RuneStart(text[whole[i].Start]) {
			whole[i].Start--
		}
		for whole[i].End < len(text) && !utf8.RuneStart(text[whole[i].End]) {
			whole[i].End++
		}
	}
	return t.encode(&watch{ctx: ctx}, text, clip(whole, 0, len(text)), limit)
}

// must is for encodings that nothing ends.
func must(ids []int32, err error) []int32 {
	if err != nil {
		panic("BUG: an encoding without bounds failed: " + err.Error())
	}
	return ids
}

func (t *Tokenizer) encode(w *watch, text string, data []Range, limit int) ([]int32, error) {
	if err := t.bound.text(text, limit); err != nil {
		return nil, err
	}
	m := merger{watch: w}
	ids := make([]int32, 0, min(len(text)/3, limit)+1)
	add := func(id int32) error {
		ids = append(ids, id)
		return over(len(ids), limit)
	}
	outerFirst := true
	for outer := range t.added.split(text, data) {
		if w.ended(len(outer.text)) {
			return nil, w.err
		}
		first := outerFirst
		outerFirst = false
		if outer.id >= 0 {
			if err := add(outer.id); err != nil {
				return nil, err
			}
			continue
		}
		text, data := outer.text, outer.data
		for _, n := range t.normalizers {
			if r, ok := n.(replaceNormalizer); ok {
				r.pattern = watched(r.pattern, w)
				n = r
			}
			text, data = n.normalize(text, data)
		}
		for inner := range t.normalized.split(text, data) {
			begins := first
			first = false
			if inner.id >= 0 {
				if err := add(inner.id); err != nil {
					return nil, err
				}
				continue
			}
			for word := range words(t.stages, inner.text, begins, w) {
				if err := t.bound.word(len(ids), word, limit); err != nil {
					return nil, err
				}
				ids = t.model.encode(&m, ids, word)
				if w.ended(len(word)) {
					return nil, w.err
				}
			}
		}
	}
	if w.ended(watchBytes) {
		return nil, w.err
	}
	return ids, over(len(ids), limit)
}

// Decode returns the text of ids; ids of no token add nothing. skipSpecial leaves special tokens out.
//
// Bytes that are not UTF-8 become U+FFFD as in HuggingFace's library, but for one case: where only some bytes of a run
// of byte-fallback tokens are broken, the others are kept, so that text can be shown while it comes.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	d := t.NewDetokenizer(skipSpecial)
	var out strings.Builder
	for _, id := range ids {
		d.push(&out, id)
	}
	d.flush(&out)
	return out.String()
}

// TokenBytes is what a token adds to the text, nil for an id of no token. It must not be modified. A blank that decoding
// takes from the start of a text is there.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.vocabulary.tokens) {
		return nil
	}
	return t.pieces.piece(id)
}

// Bytes are those of each token below ids, none where there is no such token.
func (t *Tokenizer) Bytes(ids int) [][]byte {
	all := make([][]byte, ids)
	for id := range all {
		all[id] = t.TokenBytes(int32(id))
	}
	return all
}

// VocabSize is one more than the largest id. The model's embedding may have more rows.
func (t *Tokenizer) VocabSize() int { return len(t.vocabulary.tokens) }

// ID is the id of a token as the file spells it.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.vocabulary.ids[token]
	return id, ok
}

// IsSpecial says whether a token controls the model and is no text.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id) < len(t.vocabulary.special) && t.vocabulary.special[id]
}

// BOS is the token that begins a text; false where the file names none.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS is the token that ends a text; false where the file names none. A model may have more: see its generation config.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos >= 0 }

// AddBOS says whether a text that no chat template rendered must begin with BOS.
func (t *Tokenizer) AddBOS() bool { return t.addBOS && t.bos >= 0 }

// Before is what a text that no chat template rendered begins with: BOS, where AddBOS says so, and what follows it.
func (t *Tokenizer) Before() []int32 {
	switch {
	case !t.AddBOS():
		return nil
	case len(t.before) > 1 && t.before[0] == t.bos:
		return slices.Clone(t.before)
	}
	return []int32{t.bos}
}

// AddEOS says whether such a text must end with EOS.
func (t *Tokenizer) AddEOS() bool { return t.addEOS && t.eos >= 0 }

// ChatTemplate is the chat template the files give, "" where they give none; of several, the one named "default", or the
// only one. A note says where the files leave that open.
func (t *Tokenizer) ChatTemplate() (template, note string) { return t.templates.choose() }

// SpecialTokens are those that chat templates write by name, in the order of the files.
func (t *Tokenizer) SpecialTokens() []SpecialToken { return slices.Clone(t.named) }

// Notes say what the files leave open or contradict, and what was assumed: each is one line.
func (t *Tokenizer) Notes() []string { return slices.Clone(t.notes) }

// IsAdded says whether a token is found in a text before any other rule applies, special or not.
func (t *Tokenizer) IsAdded(id int32) bool { return t.added.has(id) || t.normalized.has(id) }
