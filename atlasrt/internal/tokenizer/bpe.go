package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// bpe turns words into tokens: it cuts them into bytes or code points and merges neighbours.
//
// Words of byte-level models are the text's own bytes: the alphabet in which files spell them is undone at load.
type bpe struct {
	merges       mergeTable
	bytes        [256]int32       // byte-level: the token of the byte; otherwise its <0xNN>; -1 where there is none
	runes        map[rune]int32   // not byte-level: the token of the code point
	words        map[string]int32 // with ignoreMerges: the token of a whole word
	ignoreMerges bool             // a word that is a token is not merged from its parts
	byteLevel    bool
	byteFallback bool
	fuseUnknown  bool
	unknown      int32 // -1: what has no token is left out
	cut          *wordCut
	cache        *wordCache
}

// encode appends the tokens of one word.
func (b *bpe) encode(m *merger, ids []int32, word string) []int32 {
	if b.cut == nil {
		return b.encodeWord(m, ids, word)
	}
	for word != "" {
		n := b.cut.first(word)
		ids = b.encodeWord(m, ids, word[:n])
		word = word[n:]
	}
	return ids
}

func (b *bpe) encodeWord(m *merger, ids []int32, word string) []int32 {
	if len(word) > maxCachedBytes {
		return b.encodeNew(m, ids, word)
	}
	slot, cached := b.cache.lookup(word)
	if cached != nil {
		return append(ids, cached...)
	}
	start := len(ids)
	if ids = b.encodeNew(m, ids, word); len(ids) > start {
		store(slot, word, ids[start:])
	}
	return ids
}

func (b *bpe) encodeNew(m *merger, ids []int32, word string) []int32 {
	if id, ok := b.words[word]; ok {
		return append(ids, id)
	}
	m.table, m.symbols = &b.merges, m.symbols[:0]
	if b.byteLevel {
		m.symbols = slices.Grow(m.symbols, len(word))
		for i := range len(word) {
			m.symbols = b.symbol(m.symbols, b.bytes[word[i]], "")
		}
		return m.merge(ids)
	}
	for i, r := range word {
		_, n := utf8.DecodeRuneInString(word[i:])
		id, ok := b.runes[r]
		if !ok || r == utf8.RuneError && n == 1 {
			id = -1
		}
		m.symbols = b.symbol(m.symbols, id, word[i:i+n])
	}
	return m.merge(ids)
}

// symbol appends a token, or where it is -1 what stands for the text instead: the tokens of its bytes, or the unknown one.
func (b *bpe) symbol(symbols []int32, id int32, text string) []int32 {
	if id >= 0 {
		return append(symbols, id)
	}
	if b.byteFallback && text != "" {
		start := len(symbols)
		for _, x := range []byte(text) {
			if b.bytes[x] < 0 {
				symbols = symbols[:start]
				break
			}
			symbols = append(symbols, b.bytes[x])
		}
		if len(symbols) > start {
			return symbols
		}
	}
	if n := len(symbols); b.unknown < 0 || b.fuseUnknown && n > 0 && symbols[n-1] == b.unknown {
		return symbols
	}
	return append(symbols, b.unknown)
}

// wordCut cuts the words of models that do not pre-tokenize (Llama 2, Gemma) before blanks, where no merge can join
// what lies on either side: the tokens are the same, and the cache can help.
type wordCut struct {
	joined map[rune]bool // code points that some merge joins with a blank behind them
}

const metaspace = "▁"

// first is where the first piece of word, which is not empty, ends.
func (c *wordCut) first(word string) int {
	start := len(word) - len(strings.TrimLeft(word, metaspace))
	for {
		at := strings.Index(word[start:], metaspace)
		if at < 0 {
			return len(word)
		}
		if at += start; at > 0 {
			if r, _ := utf8.DecodeLastRuneInString(word[:at]); r != '▁' && !c.joined[r] {
				return at
			}
		}
		start = at + len(metaspace)
	}
}

// note records a merge of left and right.
func (c *wordCut) note(left, right string) {
	if r, _ := utf8.DecodeLastRuneInString(left); strings.HasPrefix(right, metaspace) && r != '▁' {
		c.joined[r] = true
	}
}
