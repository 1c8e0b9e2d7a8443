package match

import (
	"bytes"
	"slices"
	"sync"
)

// Vocabulary is the tokens of a model, made ready for masks. It does not change, and serves any number of machines.
type Vocabulary struct {
	texts    []byte
	ends     []int // of each token's text
	near     *trie // of tokens that are not far
	groups   [2][numAlphabets]group
	tails    [numAlphabets]*tails
	far      [numAlphabets]*trie // tokens of more than nearBytes, by the last alphabet that has all their characters
	painters sync.Pool
	controls map[string]bool // texts of control tokens
}

// nearBytes is how long tokens are that count as near. There are few others. What is behind so many bytes does not matter to near ones, so that many states
// allow the same of them.
const nearBytes = 32

// group is near tokens of one alphabet, which no later alphabet has. Words that begin with a blank are grouped by what is behind it.
type group struct {
	*trie
	// short are masks of all near tokens of this alphabet, those of later ones as well, that have at most so many characters; whole is of all.
	short [shortRunes + 1][]uint32
	whole []uint32
	runes int // of the longest token in whole
}

// shortRunes is how long tokens are of which there are masks by length.
const shortRunes = 16

// What the tokens of groups begin with, by number.
var leads = [2]string{"", " "}

// tails are near tokens by what is behind the characters of an alphabet that they begin with. whole is the mask of those that have nothing there.
type tails struct {
	*trie
	whole []uint32
}

// Bytes around the text of a control token, as package parse has them.
const (
	controlBegin = 0xFF
	controlEnd   = 0xFE
)

// NewVocabulary makes a vocabulary of each token's bytes. Tokens for which control says so are spelled as control tokens. Tokens without
// bytes may never come.
func NewVocabulary(tokens [][]byte, control func(id int32) bool) *Vocabulary {
	v := &Vocabulary{controls: map[string]bool{}}
	v.painters.New = func() any { return newPainter(v) }
	var near, far []int32
	for id, text := range tokens {
		if len(text) > 0 && control(int32(id)) {
			v.controls[string(text)] = true
			v.texts = append(v.texts, controlBegin)
			v.texts = append(v.texts, text...)
			v.texts = append(v.texts, controlEnd)
		} else {
			v.texts = append(v.texts, text...)
		}
		v.ends = append(v.ends, len(v.texts))
		switch n := len(v.text(int32(id))); {
		case n > nearBytes:
			far = append(far, int32(id))
		case n > 0:
			near = append(near, int32(id))
		}
	}
	byText := func(a, b int32) int { return bytes.Compare(v.text(a), v.text(b)) }
	slices.SortFunc(near, byText)
	slices.SortFunc(far, byText)
	v.near = newTrie(near, v.text)
	v.groupFar(far)
	v.group(near)
	for _, alphabet := range tailAlphabets {
		v.tails[alphabet] = v.newTails(near, alphabet)
	}
	return v
}

// Tokens is how many tokens there are.
func (v *Vocabulary) Tokens() int { return len(v.ends) }

// Words is the length of a mask: one bit a token.
func (v *Vocabulary) Words() int { return (len(v.ends) + 31) / 32 }

// HasControl tells whether a text is that of a control token.
func (v *Vocabulary) HasControl(text string) bool { return v.controls[text] }

// text is a token's bytes.
func (v *Vocabulary) text(token int32) []byte {
	from := 0
	if token > 0 {
		from = v.ends[token-1]
	}
	return v.texts[from:v.ends[token]]
}

func (v *Vocabulary) groupFar(order []int32) {
	var groups [numAlphabets][]int32
	for _, id := range order {
		alphabet := alphabetOf(v.text(id))
		groups[alphabet] = append(groups[alphabet], id)
	}
	for alphabet, tokens := range groups {
		v.far[alphabet] = newTrie(tokens, v.text)
	}
}

// group makes the groups of near tokens, which are in order.
func (v *Vocabulary) group(order []int32) {
	var groups [2][numAlphabets][]int32
	for _, id := range order {
		text := v.text(id)
		lead, alphabet := 0, alphabetOf(text)
		if alphabet == printAlphabet && len(text) > 1 && text[0] == ' ' {
			if rest := alphabetOf(text[1:]); rest > printAlphabet {
				lead, alphabet = 1, rest
			}
		}
		groups[lead][alphabet] = append(groups[lead][alphabet], id)
	}
	for lead := range groups {
		text := func(token int32) []byte { return v.text(token)[len(leads[lead]):] }
		for alphabet := numAlphabets - 1; alphabet >= 0; alphabet-- {
			g := &v.groups[lead][alphabet]
			g.trie = newTrie(groups[lead][alphabet], text)
			if alphabet != bytesAlphabet {
				later := &group{}
				if alphabet+1 < numAlphabets {
					later = &v.groups[lead][alphabet+1]
				}
				v.count(g, later, text)
			}
		}
	}
}

// count makes the masks of a group, which have those of the later alphabet.
func (v *Vocabulary) count(g, later *group, text func(token int32) []byte) {
	if len(g.tokens) == 0 && later.whole != nil {
		g.short, g.whole, g.runes = later.short, later.whole, later.runes
		return
	}
	begin := func(mask []uint32) []uint32 {
		if mask == nil {
			return make([]uint32, v.Words())
		}
		return slices.Clone(mask)
	}
	for most := range g.short {
		g.short[most] = begin(later.short[most])
	}
	g.whole, g.runes = begin(later.whole), later.runes
	for _, id := range g.tokens {
		runes := 0
		for _, b := range text(id) {
			if beginsRune(b) {
				runes++
			}
		}
		for most := runes; most <= shortRunes; most++ {
			g.short[most][id/32] |= 1 << (id % 32)
		}
		g.whole[id/32] |= 1 << (id % 32)
		g.runes = max(g.runes, runes)
	}
}

// newTails makes the tails of an alphabet.
func (v *Vocabulary) newTails(near []int32, alphabet int) *tails {
	t := &tails{whole: make([]uint32, v.Words())}
	cut := make([]uint8, v.Tokens())
	var tokens []int32
	for _, id := range near {
		text := v.text(id)
		n := alphabets[alphabet].prefix(text)
		if n == len(text) {
			t.whole[id/32] |= 1 << (id % 32)
			continue
		}
		cut[id] = uint8(n)
		tokens = append(tokens, id)
	}
	text := func(token int32) []byte { return v.text(token)[cut[token]:] }
	slices.SortFunc(tokens, func(a, b int32) int { return bytes.Compare(text(a), text(b)) })
	t.trie = newTrie(tokens, text)
	return t
}
