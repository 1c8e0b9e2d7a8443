package sample

import (
	"math"
	"slices"
)

// Entries are changes to logits, one for each token whose logit changes.
//
// An entry changes the logit z as in op.Sample: z + Bias; then divided by Factor where that is positive, else multiplied by it; then
// + Offset.
type Entries struct {
	Token                []int32   // the tokens, each once
	Bias, Factor, Offset []float32 // by entry
}

// Len is how many there are.
func (e Entries) Len() int { return len(e.Token) }

// Edits are the changes that a sequence's bias, penalties and Close make to logits, kept up to date as it grows.
type Edits struct {
	Entries // of bias and penalties

	params  Params
	at      map[int32]int // the entry of a token
	counts  []int32       // by entry: how often the token was generated
	held    []int32       // tokens that are ruled out until LetGo
	before  []float32     // their biases after LetGo
	closing *closing      // nil: nothing is forced
	changes bool          // there is a bias, a penalty or something held
}

// NewEdits makes the edits for the first token that a sequence generates. It returns nil where there is no bias, no penalty, nothing
// to hold back and nothing to close; a nil *Edits has no entries, and its methods may be called.
//
// Tokens of hold, the end tokens, are ruled out until LetGo.
func NewEdits(p Params, prompt, hold []int32, c *Close) *Edits {
	repeats := p.RepetitionPenalty != 1
	changes := len(p.LogitBias) > 0 || len(hold) > 0 || repeats || p.FrequencyPenalty != 0 || p.PresencePenalty != 0
	if !changes && c == nil {
		return nil
	}
	e := &Edits{params: p, at: make(map[int32]int), changes: changes}
	if c != nil {
		e.closing = newClosing(c)
	}
	biased := make([]int32, 0, len(p.LogitBias))
	for token := range p.LogitBias {
		biased = append(biased, token)
	}
	slices.Sort(biased) // so that the order of entries is the same each time
	for _, token := range biased {
		e.Bias[e.entry(token)] = p.LogitBias[token]
	}
	if repeats {
		for _, token := range prompt {
			e.Factor[e.entry(token)] = p.RepetitionPenalty
		}
	}
	for _, token := range hold {
		if slices.Contains(e.held, token) {
			continue
		}
		i := e.entry(token)
		e.held, e.before = append(e.held, token), append(e.before, e.Bias[i])
		e.Bias[i] = float32(math.Inf(-1))
	}
	return e
}

// Append takes a generated token into account.
func (e *Edits) Append(token int32) {
	if e == nil {
		return
	}
	if e.closing != nil {
		e.closing.append(token)
	}
	if e.params.RepetitionPenalty != 1 {
		e.Factor[e.entry(token)] = e.params.RepetitionPenalty
	}
	if e.params.FrequencyPenalty == 0 && e.params.PresencePenalty == 0 {
		return
	}
	i := e.entry(token)
	e.counts[i]++
	e.Offset[i] = -e.params.FrequencyPenalty*float32(e.counts[i]) - e.params.PresencePenalty
}

// LetGo lets the tokens that were held back be sampled.
func (e *Edits) LetGo() {
	if e == nil {
		return
	}
	for i, token := range e.held {
		e.Bias[e.at[token]] = e.before[i]
	}
	e.held = nil
}

// Now are the entries for the next token.
func (e *Edits) Now() Entries {
	switch {
	case e == nil:
		return Entries{}
	case e.closing != nil && e.closing.due():
		return e.closing.entries()
	}
	return e.Entries
}

// RulesOut tells whether a token cannot be drawn next, whatever its logit.
func (e *Edits) RulesOut(token int32) bool {
	now := e.Now()
	i := slices.Index(now.Token, token)
	return i >= 0 && math.IsInf(float64(now.Bias[i]), -1)
}

// Late tells whether there may be entries for one of the next tokens, at least two: what they are may depend on a token that is not known yet.
func (e *Edits) Late(tokens int) bool { return e != nil && (e.changes || e.closing.near(tokens)) }

// entry is the entry of a token. A new one changes nothing.
func (e *Edits) entry(token int32) int {
	i, ok := e.at[token]
	if !ok {
		i = len(e.Token)
		e.at[token] = i
		e.Token, e.counts = append(e.Token, token), append(e.counts, 0)
		e.Bias, e.Factor, e.Offset = append(e.Bias, 0), append(e.Factor, 1), append(e.Offset, 0)
	}
	return i
}
