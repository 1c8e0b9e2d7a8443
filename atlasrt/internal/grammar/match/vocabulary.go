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
	groups   [2][numAlphabets]group
	reach    int // bytes of the longest token
	painters *sync.Pool
	controls map[string]bool // texts of control tokens
}

// group is tokens of one alphabet, which no later alphabet has. Words that begin with a blank are grouped by what is behind it.
type group struct {
	*trie
	// short are masks of all tokens of this alphabet, those of later ones as well, that have at most so many characters; whole is all.
	short [shortRunes + 1][]uint32
	whole []uint32
	runes int // of the longest token in whole, at most manyRunes
}

// shortRunes is how long tokens are of which there are masks by length.
const shortRunes = 16

// What tokens begin with, by number.
var leads = [2]string{"", " "}

// Bytes around the text of a control token, as package parse has them.
const (
	controlBegin = 0xFF
	controlEnd   = 0xFE
)

// NewVocabulary makes a vocabulary of each token's bytes. Tokens for which control says so are spelled as control tokens. Tokens without
// bytes may never come.
func NewVocabulary(tokens [][]byte, control func(id int32) bool) *Vocabulary {
	v := &Vocabulary{controls: map[string]bool{}}
	v.painters = newPainters(v)
	var order []int32
	for id, text := range tokens {
		if len(text) > 0 {
			order = append(order, int32(id))
		}
		if len(text) > 0 && control(int32(id)) {
			v.controls[string(text)] = true
			v.texts = append(v.texts, controlBegin)
			v.texts = append(v.texts, text...)
			v.texts = append(v.texts, controlEnd)
		} else {
			v.texts = append(v.texts, text...)
		}
		v.ends = append(v.ends, len(v.texts))
		v.reach = max(v.reach, len(v.text(int32(id))))
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(v.text(a), v.text(b)) })
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
		for alphabet := numAlphabets - 1; alphabet >= 0; alphabet-- {
			g := &v.groups[lead][alphabet]
			g.trie = newTrie(v, groups[lead][alphabet], len(leads[lead]))
			if alphabet != bytesAlphabet {
				v.count(g, lead, alphabet)
			}
		}
	}
	return v
}

// count makes the masks of a group. Those of the later alphabets are made.
func (v *Vocabulary) count(g *group, lead, alphabet int) {
	if len(g.tokens) == 0 && alphabet+1 < numAlphabets {
		later := v.groups[lead][alphabet+1]
		g.short, g.whole, g.runes = later.short, later.whole, later.runes
		return
	}
	add := func(to *[]uint32, most int) {
		*to = make([]uint32, v.Words())
		if alphabet+1 < numAlphabets {
			later := &v.groups[lead][alphabet+1]
			if most > shortRunes {
				copy(*to, later.whole)
			} else {
				copy(*to, later.short[most])
			}
		}
	}
	for most := range g.short {
		add(&g.short[most], most)
	}
	add(&g.whole, manyRunes)
	if alphabet+1 < numAlphabets {
		g.runes = v.groups[lead][alphabet+1].runes
	}
	for _, id := range g.tokens {
		runes := 0
		for _, b := range v.text(id)[len(leads[lead]):] {
			if beginsRune(b) {
				runes++
			}
		}
		for most := runes; most <= shortRunes; most++ {
			g.short[most][id/32] |= 1 << (id % 32)
		}
		g.whole[id/32] |= 1 << (id % 32)
		g.runes = min(max(g.runes, runes), manyRunes)
	}
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
