package tokenizer

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is found in the text before any other rule applies.
type addedToken struct {
	id                    int32
	content               string
	special               bool // controls the model; the rest are plain words that must not be cut
	normalized            bool // found in the text after normalization, not before
	leftStrip, rightStrip bool // takes the white space beside it along
	singleWord            bool // found only where no word touches it
}

const (
	maxAddedTokenBytes = 4 << 10
	maxAddedBytes      = 4 << 20
)

// addedMatcher finds added tokens, at each place the longest.
type addedMatcher struct {
	tokens []addedToken
	first  [256]bool         // the bytes that a token begins with
	blank  []bool            // by index in tokens: white space and not special, so found in data too
	blanks bool              // there are such tokens
	edges  map[uint32]uint32 // trie: node<<8 | byte → node
	ends   map[uint32]int    // node → index in tokens
}

// newAddedMatcher finds the tokens by the texts beside them.
func newAddedMatcher(tokens []addedToken, texts []string) (*addedMatcher, error) {
	m := &addedMatcher{tokens: tokens, blank: make([]bool, len(tokens)), edges: make(map[uint32]uint32), ends: make(map[uint32]int)}
	total := 0
	for i, text := range texts {
		if text == "" || !utf8.ValidString(text) { // no text has it
			continue
		}
		if total += len(text); len(text) > maxAddedTokenBytes || total > maxAddedBytes {
			return nil, fmt.Errorf("added_tokens: more than %d bytes in one, or %d in all", maxAddedTokenBytes, maxAddedBytes)
		}
		m.first[text[0]] = true
		m.blank[i] = !tokens[i].special && strings.TrimSpace(strings.ReplaceAll(text, metaspace, "")) == ""
		m.blanks = m.blanks || m.blank[i]
		node := uint32(0)
		for _, b := range []byte(text) {
			next, ok := m.edges[node<<8|uint32(b)]
			if !ok {
				next = uint32(len(m.edges)) + 1
				m.edges[node<<8|uint32(b)] = next
			}
			node = next
		}
		m.ends[node] = i
	}
	return m, nil
}

// has says whether the matcher finds the token.
func (m *addedMatcher) has(id int32) bool {
	return slices.ContainsFunc(m.tokens, func(t addedToken) bool { return t.id == id })
}

// longest is the index of the longest token that text begins with, and its length; data begins at limit.
func (m *addedMatcher) longest(text string, limit int) (index, length int) {
	node := uint32(0)
	for i := range len(text) {
		next, ok := m.edges[node<<8|uint32(text[i])]
		if !ok {
			break
		}
		node = next
		if found, ok := m.ends[node]; ok && (i < limit || m.blank[found]) {
			index, length = found, i+1
		}
	}
	return index, length
}

// segment is an added token of the text, or text between two.
type segment struct {
	id   int32 // of the added token, or -1
	text string
	data []Range // of text
}

// split cuts text into added tokens and what lies between them. No token is found that overlaps data, but for those that
// are mere white space: models that have them (Gemma) know no other form of it, and it controls nothing. Segments are
// found as they are asked for.
func (m *addedMatcher) split(text string, data []Range) iter.Seq[segment] {
	return func(yield func(segment) bool) {
		if len(m.edges) == 0 || !m.blanks && len(data) == 1 && data[0] == (Range{0, len(text)}) {
			yield(segment{-1, text, data})
			return
		}
		m.scan(text, data, yield)
	}
}

func (m *addedMatcher) scan(text string, data []Range, yield func(segment) bool) {
	done := 0 // what the segments so far cover
	remaining := data
	for i := 0; i < len(text); {
		if !m.first[text[i]] {
			i++
			continue
		}
		for len(remaining) > 0 && remaining[0].End <= i {
			remaining = remaining[1:]
		}
		limit := len(text)
		if len(remaining) > 0 {
			limit = max(remaining[0].Start, i)
		}
		index, length := m.longest(text[i:], limit-i)
		if length == 0 {
			i++
			continue
		}
		start, end := i, i+length
		token := &m.tokens[index]
		if i = end; token.singleWord && touchesWord(text, start, end) {
			continue
		}
		if token.leftStrip {
			start = done + len(strings.TrimRightFunc(text[done:start], unicode.IsSpace))
		}
		if token.rightStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			i = end
		}
		if done < start && !yield(segment{-1, text[done:start], within(data, done, start)}) {
			return
		}
		if !yield(segment{id: token.id}) {
			return
		}
		done = end
	}
	if done < len(text) {
		yield(segment{-1, text[done:], within(data, done, len(text))})
	}
}

// touchesWord says whether a word goes on before or behind text[start:end].
func touchesWord(text string, start, end int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:start])
	behind, m := utf8.DecodeRuneInString(text[end:])
	return n > 0 && isWord(before) || m > 0 && isWord(behind)
}
