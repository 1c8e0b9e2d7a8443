package sample

import "bytes"

// Breakers find texts among tokens, however they spell them. They are tables, one for each text.
type Breakers struct {
	Texts []Breaker // one for each text
}

// Breaker finds one text, of n bytes. Its states are how much of the text has come, from 0 to n-1.
type Breaker struct {
	// Next has, for each state, the state behind a token, and n more where the text ended in the token. A token that is not in it leads to
	// where it leads from the state of Shorter, and from state 0 to state 0.
	Next    []map[int32]int32
	Shorter []int32 // by state
}

// What breakers may be. llama.cpp cuts them at as many bytes.
const (
	MaxBreakers     = 32
	MaxBreakerBytes = 40
)

// UsualBreakers are those where none are given, as in text-generation-webui and llama.cpp.
func UsualBreakers() []string { return []string{"\n", ":", "\"", "*"} }

// NewBreakers finds texts, none of which is empty. Vocabulary is what each token adds to the text.
func NewBreakers(texts []string, vocabulary [][]byte) *Breakers {
	b := &Breakers{}
	for _, text := range texts {
		b.Texts = append(b.Texts, newBreaker(text, vocabulary))
	}
	return b
}

func newBreaker(text string, vocabulary [][]byte) Breaker {
	n := int32(len(text))
	shorter := make([]int32, n+1) // by how much has come: the next shorter beginning that it ends with (Knuth, Morris and Pratt)
	step := func(state int32, c byte) int32 {
		for state == n || text[state] != c {
			if state == 0 {
				return 0
			}
			state = shorter[state]
		}
		return state + 1
	}
	for i := int32(1); i < n; i++ {
		shorter[i+1] = step(shorter[i], text[i])
	}
	b := Breaker{Next: make([]map[int32]int32, n), Shorter: shorter[:n]}
	for state := range b.Next {
		b.Next[state] = map[int32]int32{}
		for token, spelled := range vocabulary {
			if len(spelled) == 0 || state > 0 && spelled[0] != text[state] || state == 0 && bytes.IndexByte(spelled, text[0]) < 0 {
				continue
			}
			now, ended := int32(state), int32(0)
			for _, c := range spelled {
				if now = step(now, c); now == n {
					ended = n
				}
			}
			if now == n {
				now = shorter[n]
			}
			b.Next[state][int32(token)] = now + ended
		}
	}
	return b
}

// after is the entry of Next for a token.
func (b *Breaker) after(state, token int32) int32 {
	for {
		if next, ok := b.Next[state][token]; ok || state == 0 {
			return next
		}
		state = b.Shorter[state]
	}
}

// start is the states before any token.
func (b *Breakers) start() []int32 {
	if b == nil {
		return nil
	}
	return make([]int32, len(b.Texts))
}

// follow moves the states on by a token, and tells whether a text ended in it.
func (b *Breakers) follow(states []int32, token int32) (ended bool) {
	for i := range states {
		n := int32(len(b.Texts[i].Next))
		states[i] = b.Texts[i].after(states[i], token)
		if states[i] >= n {
			states[i] -= n
			ended = true
		}
	}
	return ended
}

// within tells whether a token has a text in it.
func (b *Breakers) within(token int32) bool {
	if b == nil {
		return false
	}
	for i := range b.Texts {
		if b.Texts[i].Next[0][token] >= int32(len(b.Texts[i].Next)) {
			return true
		}
	}
	return false
}
