package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// Limits on what a file may ask for. The largest published vocabularies have 262,145 tokens and 514,906 merges.
const (
	maxFileBytes  = 256 << 20
	maxTokens     = 2_000_000
	maxTokenBytes = 64 << 10
	maxMerges     = 4_000_000
	maxUnusedIDs  = 1 << 16
)

// vocabulary is the tokens by id and the ids by token, spelled as in the file.
type vocabulary struct {
	tokens  []string // "" where an id has no token
	special []bool
	ids     map[string]int32
}

// add gives a token its id; the same pair twice is no error.
func (v *vocabulary) add(token string, id int64) error {
	if id < 0 || id >= maxTokens {
		return fmt.Errorf("token %.40q has id %d: ids are 0 to %d", token, id, maxTokens-1)
	}
	if len(token) > maxTokenBytes {
		return fmt.Errorf("token %.40q… has %d bytes: at most %d are allowed", token, len(token), maxTokenBytes)
	}
	if old, ok := v.ids[token]; ok && int64(old) != id {
		return fmt.Errorf("token %.40q has two ids, %d and %d", token, old, id)
	}
	for int64(len(v.tokens)) <= id {
		v.tokens = append(v.tokens, "")
		v.special = append(v.special, false)
	}
	if old := v.tokens[id]; old != "" && old != token {
		return fmt.Errorf("id %d has two tokens, %.40q and %.40q", id, old, token)
	}
	v.tokens[id] = token
	v.ids[token] = int32(id)
	return nil
}

// checkDense refuses ids that leave more room than files do.
func (v *vocabulary) checkDense() error {
	if unused := len(v.tokens) - len(v.ids); unused > maxUnusedIDs {
		return fmt.Errorf("%d tokens have ids up to %d: ids must be dense", len(v.ids), len(v.tokens)-1)
	}
	return nil
}

// merge joins two tokens to a third; the lowest rank goes first.
type merge struct{ left, right, rank, id int32 }

// merge finds the tokens of a merge.
func (v *vocabulary) merge(left, right string, rank int) (merge, error) {
	if rank >= maxMerges {
		return merge{}, fmt.Errorf("merges: at most %d are allowed", maxMerges)
	}
	m := merge{rank: int32(rank)}
	var known [3]bool
	m.left, known[0] = v.ids[left]
	m.right, known[1] = v.ids[right]
	m.id, known[2] = v.ids[left+right]
	for i, token := range [...]string{left, right, left + right} {
		if !known[i] || token == "" {
			return merge{}, fmt.Errorf("merges: number %d joins %.40q and %.40q: %.40q is no token", rank, left, right, token)
		}
	}
	return m, nil
}

// fill makes the tables by which b finds its symbols. No text is cut into special tokens: only split finds them.
func (v *vocabulary) fill(b *bpe) {
	for i := range b.bytes {
		b.bytes[i] = -1
	}
	b.runes = make(map[rune]int32)
	if b.ignoreMerges {
		b.words = make(map[string]int32)
	}
	for i, token := range v.tokens {
		id := int32(i)
		if v.special[id] || token == "" {
			continue
		}
		word := token
		if b.byteLevel {
			raw, ok := fromAlphabet(token)
			if !ok {
				continue
			}
			if word = raw; len(raw) == 1 {
				b.bytes[raw[0]] = id
			}
		} else if x, ok := byteToken(token); ok && token == fmt.Sprintf("<0x%02X>", x) {
			b.bytes[x] = id
		} else if r, n := utf8.DecodeRuneInString(token); n == len(token) && (r != utf8.RuneError || n > 1) {
			b.runes[r] = id
		}
		if b.ignoreMerges {
			b.words[word] = id
		}
	}
}
