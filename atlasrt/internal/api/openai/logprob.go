package openai

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// Log-probabilities are finite; -9999 stands for the impossible.

type chatLogProbs struct {
	Content []LogProb `json:"content"`
	Refusal []LogProb `json:"refusal"`
}

// LogProb is a token of an answer with those that could have been.
type LogProb struct {
	TopLogProb
	Top []TopLogProb `json:"top_logprobs"` // the likeliest first
}

// TopLogProb is a token with its log-probability.
type TopLogProb struct {
	Token   string  `json:"token"`   // bytes that are no whole code point show as U+FFFD
	LogProb float32 `json:"logprob"` // natural logarithm
	Bytes   []int   `json:"bytes"`   // of the token
}

func newTopLogProb(text []byte, logProb float32) TopLogProb {
	numbers := make([]int, len(text))
	for i, b := range text {
		numbers[i] = int(b)
	}
	return TopLogProb{strings.ToValidUTF8(string(text), "\ufffd"), logProb, numbers}
}

// LogProbs are those of tokens, in the form of chats and of the Responses API; never nil.
func LogProbs(tokens []chat.Token) []LogProb {
	out := make([]LogProb, len(tokens))
	for i, t := range tokens {
		out[i] = LogProb{newTopLogProb(t.Bytes, t.LogProb), make([]TopLogProb, len(t.Top))}
		for j, top := range t.Top {
			out[i].Top[j] = newTopLogProb(top.Bytes, top.LogProb)
		}
	}
	return out
}

// textLogProbs is the form of the completions route: parallel arrays, offsets in code points.
type textLogProbs struct {
	Tokens   []string             `json:"tokens"`
	LogProbs []*float32           `json:"token_logprobs"`
	Top      []map[string]float32 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"`
}

// answerLogProbs is nil where there are no tokens; offset moves behind them.
func answerLogProbs(tokens []chat.Token, offset *int) *textLogProbs {
	if len(tokens) == 0 {
		return nil
	}
	l := &textLogProbs{}
	for i := range tokens {
		l.add(tokens[i], &tokens[i].LogProb, offset)
	}
	return l
}

// echoLogProbs is those of a prompt, whose first token follows nothing and has none.
func echoLogProbs(e *chat.Event, offset *int) *textLogProbs {
	start := *offset
	l := answerLogProbs(e.Tokens, offset)
	if l != nil {
		l.LogProbs[0], l.Top[0] = nil, nil
	}
	*offset = start + utf8.RuneCountInString(e.Text)
	return l
}

func (l *textLogProbs) add(t chat.Token, logProb *float32, offset *int) {
	l.Tokens = append(l.Tokens, visible(t.Bytes))
	l.LogProbs = append(l.LogProbs, logProb)
	l.Offsets = append(l.Offsets, *offset)
	top := map[string]float32{visible(t.Bytes): t.LogProb}
	for _, other := range t.Top { // the likeliest first; of tokens that look alike the first counts
		if name := visible(other.Bytes); !contains(top, name) {
			top[name] = other.LogProb
		}
	}
	l.Top = append(l.Top, top)
	if t.Hidden {
		return
	}
	for _, b := range t.Bytes {
		if utf8.RuneStart(b) {
			*offset++
		}
	}
}

func contains(m map[string]float32, key string) bool {
	_, ok := m[key]
	return ok
}

// visible is a token's text, or the names of its bytes where they are no whole code points: there is no other field for
// them in this form, and tokens must stay apart.
func visible(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range text {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// join is l followed by more; either may be nil.
func (l *textLogProbs) join(more *textLogProbs) *textLogProbs {
	if l == nil || more == nil {
		if l == nil {
			return more
		}
		return l
	}
	l.Tokens = append(l.Tokens, more.Tokens...)
	l.LogProbs = append(l.LogProbs, more.LogProbs...)
	l.Top = append(l.Top, more.Top...)
	l.Offsets = append(l.Offsets, more.Offsets...)
	return l
}

// shift moves offsets behind a text of so many code points.
func (l *textLogProbs) shift(by int) {
	if l == nil {
		return
	}
	for i := range l.Offsets {
		l.Offsets[i] += by
	}
}
