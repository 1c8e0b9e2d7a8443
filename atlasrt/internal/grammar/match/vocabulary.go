package match

import (
	"bytes"
	"slices"
	"sync"
)

// Vocabulary is the tokens of a model, made ready for masks. It serves any number of machines.
type Vocabulary struct {
	texts    []byte
	ends     []int // of each token's text
	near     *trie // of tokens that are not far
	tails    [len(tailKinds)]tails
	groups   []*trie // of near tokens, by the kinds of their characters
	firsts   [256][]first
	far      []*trie // likewise, of tokens of more than nearBytes
	maskers  sync.Pool
	controls map[string]bool // texts of control tokens

	lock  sync.Mutex
	whole map[wholeKey][]uint32 // masks of the near tokens of some kinds
}

// nearBytes is how long tokens are that count as near. There are few others. What is behind so many bytes does not matter to near ones, so that many states
// allow the same of them.
const nearBytes = 32

// first is a branch of the first bytes of a group's tokens.
type first struct {
	group  *trie
	branch uint32
}

// tails are near tokens by what is behind the characters of some kinds that they begin with. whole is the mask of those that have nothing there.
type tails struct {
	*trie
	whole []uint32
}

// wholeKey says which tokens a mask has: those of some kinds of at most some characters.
type wholeKey struct {
	kinds kinds
	runes int
}

// maxWhole is how many such masks are kept.
const maxWhole = 512

// Bytes around the text of a control token, which no UTF-8 has. Package parse has the same.
const (
	ControlBegin = 0xFF
	ControlEnd   = 0xFE
)

// NewVocabulary makes a vocabulary of each token's bytes. Tokens for which control says so are spelled as control tokens. Tokens without
// bytes may never come.
func NewVocabulary(tokens [][]byte, control func(id int32) bool) *Vocabulary {
	v := &Vocabulary{controls: map[string]bool{}, whole: map[wholeKey][]uint32{}}
	v.maskers.New = func() any { return newMasker(v) }
	var near, far []int32
	for id, text := range tokens {
		if len(text) > 0 && control(int32(id)) {
			v.controls[string(text)] = true
			v.texts = append(v.texts, spellControl(string(text))...)
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
	v.sort(near, v.text)
	v.sort(far, v.text)
	v.near = newTrie(near, v.text, 0)
	v.groups, v.far = v.group(near), v.group(far)
	for _, g := range v.groups {
		for b, branch := range g.root {
			if branch != 0 {
				v.firsts[b] = append(v.firsts[b], first{g, branch})
			}
		}
	}
	for at, k := range tailKinds {
		v.tails[at] = v.newTails(near, k)
	}
	return v
}

// Tokens is how many tokens there are.
func (v *Vocabulary) Tokens() int { return len(v.ends) }

// Words is the length of a mask: one bit a token.
func (v *Vocabulary) Words() int { return (len(v.ends) + 31) / 32 }

// Spell is how a grammar writes a mark: as a control token where one has its text, else as it stands.
func (v *Vocabulary) Spell(text string) string {
	if v.controls[text] {
		return spellControl(text)
	}
	return text
}

func spellControl(text string) string {
	return string([]byte{ControlBegin}) + text + string([]byte{ControlEnd})
}

// text is a token's bytes.
func (v *Vocabulary) text(token int32) []byte {
	from := 0
	if token > 0 {
		from = v.ends[token-1]
	}
	return v.texts[from:v.ends[token]]
}

// sort brings tokens in order of some texts of theirs.
func (v *Vocabulary) sort(tokens []int32, text func(token int32) []byte) {
	slices.SortFunc(tokens, func(a, b int32) int { return bytes.Compare(text(a), text(b)) })
}

// group makes groups of tokens, which are in order.
func (v *Vocabulary) group(order []int32) []*trie {
	number := map[kinds]int{}
	var all []kinds
	var tokens [][]int32
	for _, id := range order {
		k := kindsOf(v.text(id))
		at, known := number[k]
		if !known {
			at = len(all)
			number[k] = at
			all, tokens = append(all, k), append(tokens, nil)
		}
		tokens[at] = append(tokens[at], id)
	}
	groups := make([]*trie, len(all))
	for at, k := range all {
		groups[at] = newTrie(tokens[at], v.text, k)
	}
	return groups
}

// newTails makes the tails of near tokens behind characters of some kinds.
func (v *Vocabulary) newTails(near []int32, k kinds) tails {
	t := tails{whole: make([]uint32, v.Words())}
	cut := make([]uint8, v.Tokens())
	var tokens []int32
	for _, id := range near {
		text := v.text(id)
		n := k.prefix(text)
		if n == len(text) {
			t.whole[id/32] |= 1 << (id % 32)
			continue
		}
		cut[id] = uint8(n)
		tokens = append(tokens, id)
	}
	text := func(token int32) []byte { return v.text(token)[cut[token]:] }
	v.sort(tokens, text)
	t.trie = newTrie(tokens, text, 0)
	return t
}

// wholeOf is the mask of the near tokens whose characters are of some kinds, and at most so many.
func (v *Vocabulary) wholeOf(k kinds, runes int) []uint32 {
	key := wholeKey{k, min(runes, nearBytes)}
	v.lock.Lock()
	defer v.lock.Unlock()
	if known := v.whole[key]; known != nil {
		return known
	}
	mask := make([]uint32, v.Words())
	for _, g := range v.groups {
		if g.kinds&^k == 0 {
			g.mark(0, key.runes, mask)
		}
	}
	if len(v.whole) < maxWhole {
		v.whole[key] = mask
	}
	return mask
}

// mark adds the tokens below a branch that have at most so many characters behind it.
func (t *trie) mark(at uint32, runes int, mask []uint32) {
	tokens := t.below(at)
	more := int(t.nodes[at].runes) > runes
	if more {
		tokens = t.here(at)
	}
	for _, id := range tokens {
		mask[id/32] |= 1 << (id % 32)
	}
	if !more {
		return
	}
	first, end := t.children(at)
	for child := first; child < end; child++ {
		switch b := t.nodes[child].byte; {
		case !beginsRune(b):
			t.mark(child, runes, mask)
		case runes > 0:
			t.mark(child, runes-1, mask)
		}
	}
}
