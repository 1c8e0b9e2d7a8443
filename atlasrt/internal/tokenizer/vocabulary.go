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
	odd     oddities
}

// oddities count what published files have and no text needs.
type oddities struct{ empty, notText, doubledTokens, doubledIDs, merges int }

// notes say what was found, and what counts.
func (o oddities) notes() []string {
	var notes []string
	say := func(n int, format string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf(format, n))
		}
	}
	say(o.empty, "tokens that are empty: %d; no text has them")
	say(o.notText, "tokens that are not UTF-8: %d; no text has them")
	say(o.doubledTokens, "tokens that have two ids: %d; texts get the last one, each id keeps its text")
	say(o.doubledIDs, "ids that have two tokens: %d; they stand for the first one's text")
	say(o.merges, "merges of what is no token: %d; they are left out")
	return notes
}

// add gives a token its id; the same pair twice is nothing odd.
func (v *vocabulary) add(token string, id int64) error {
	if id < 0 || id >= maxTokens {
		return fmt.Errorf("token %.40q has id %d: ids are 0 to %d", token, id, maxTokens-1)
	}
	if len(token) > maxTokenBytes {
		return fmt.Errorf("token %.40q… has %d bytes: at most %d are allowed", token, len(token), maxTokenBytes)
	}
	for int64(len(v.tokens)) <= id {
		v.tokens = append(v.tokens, "")
		v.special = append(v.special, false)
	}
	if token == "" {
		v.odd.empty++
		return nil
	}
	if !utf8.ValidString(token) {
		v.odd.notText++
	}
	if old, ok := v.ids[token]; ok && int64(old) != id {
		v.odd.doubledTokens++
	}
	if old := v.tokens[id]; old != "" && old != token {
		v.odd.doubledIDs++
	} else {
		v.tokens[id] = token
	}
	v.ids[token] = int32(id)
	return nil
}

// checkDense refuses ids that leave more room than files do.
func (v *vocabulary) checkDense() error {
	used := 0
	for _, token := range v.tokens {
		if token != "" {
			used++
		}
	}
	if len(v.tokens)-used > maxUnusedIDs {
		return fmt.Errorf("%d tokens have ids up to %d: ids must be dense", used, len(v.tokens)-1)
	}
	return nil
}

// merge joins two tokens to a third; the lowest rank goes first.
type merge struct{ left, right, rank, id int32 }

// merge appends a merge of known tokens; any other is counted as odd.
func (v *vocabulary) merge(merges []merge, left, right string, rank int) ([]merge, error) {
	if rank >= maxMerges {
		return nil, fmt.Errorf("merges: at most %d are allowed", maxMerges)
	}
	l, leftOK := v.ids[left]
	r, rightOK := v.ids[right]
	id, ok := v.ids[left+right]
	if !leftOK || !rightOK || !ok {
		v.odd.merges++
		return merges, nil
	}
	return append(merges, merge{l, r, int32(rank), id}), nil
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
	for token, id := range v.ids {
		if v.special[id] {
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
