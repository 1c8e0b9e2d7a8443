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

// Edits are the changes that a sequence's biases, bans, penalties and Budget make to logits, kept up to date as it grows.
type Edits struct {
	Entries // of all but Budget

	params  Params
	at      map[int32]int // the entry of a token
	causes  []cause       // by entry
	context []int32       // the prompt and what was generated, where something looks back at it
	prompt  int           // tokens of it that are the prompt
	looks   bool          // something does
	held    []int32       // tokens that are ruled out until LetGo
	ended   []int32       // tokens that are ruled out next, since they end bad words
	dry     *dry          // nil: off
	lz      *lz           // nil: off
	closing *closing      // nil: nothing is forced
	changes bool          // there may be entries
}

// cause is why the logit of a token changes. The zero value leaves it as it is.
type cause struct {
	bias        float32
	bans        int32   // reasons to rule it out
	seen, count int32   // how often it came, for the repetition penalty and for the two others
	sequence    float32 // offset by DRY
	known       float32 // offset by the LZ penalty
}

// offset is what is added to the logit of a token.
type offset struct {
	token int32
	value float32
}

// NewEdits makes the edits for the first token that a sequence generates, of a model with so many tokens. It returns nil where nothing
// changes a logit; a nil *Edits has no entries, and its methods may be called.
//
// Tokens of hold, the end tokens, are ruled out until LetGo.
func NewEdits(p Params, vocab int32, prompt, hold []int32, b *Budget) *Edits {
	words := len(p.BadWords) > 0
	changes := len(p.LogitBias) > 0 || len(hold) > 0 || words || p.Penalises() || p.DRY.Multiplier > 0 || p.LZPenalty > 0
	if !changes && b == nil {
		return nil
	}
	e := &Edits{params: p, at: make(map[int32]int), changes: changes}
	if b != nil {
		e.closing = newClosing(b)
	}
	biased := make([]int32, 0, len(p.LogitBias))
	for token := range p.LogitBias {
		biased = append(biased, token)
	}
	slices.Sort(biased) // so that the order of entries is the same each time
	for _, token := range biased {
		e.change(token, func(c *cause) { c.bias = p.LogitBias[token] })
	}
	e.penalise(prompt)
	for _, token := range hold {
		if !slices.Contains(e.held, token) {
			e.held = append(e.held, token)
			e.change(token, ban)
		}
	}
	if e.looks = p.looksBack(); e.looks {
		e.context, e.prompt = slices.Clone(prompt), len(prompt)
	}
	if p.DRY.Multiplier > 0 {
		e.dry = newDRY(p.DRY, e.context)
	}
	if p.LZPenalty > 0 {
		e.lz = newLZ(p.LZPenalty, vocab)
	}
	e.banWords()
	e.look()
	return e
}

// looksBack tells whether the tokens so far are looked at again.
func (p *Params) looksBack() bool {
	return p.Penalises() && p.Window > 0 || p.DRY.Multiplier > 0 || p.LZPenalty > 0 || slices.ContainsFunc(p.BadWords, func(w []int32) bool { return len(w) > 1 })
}

// Append takes a generated token into account.
func (e *Edits) Append(token int32) {
	if e == nil {
		return
	}
	if e.closing != nil {
		e.closing.append(token)
	}
	if e.looks {
		e.context = append(e.context, token)
	}
	e.penaliseNext(token)
	if e.dry != nil {
		e.dry.append(e.context)
	}
	e.look()
}

// look finds the edits that follow from the last tokens.
func (e *Edits) look() {
	e.endWords()
	if e.dry != nil {
		e.repeat(e.dry.offsets(e.context))
	}
	if e.lz != nil {
		now, gone := e.lz.offsets(e.context)
		for _, token := range gone {
			e.change(token, func(c *cause) { c.known = 0 })
		}
		for _, o := range now {
			e.change(o.token, func(c *cause) { c.known = o.value })
		}
	}
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
	if e == nil || e.closing != nil && e.closing.due() {
		return false
	}
	i, ok := e.at[token]
	return ok && math.IsInf(float64(e.Bias[i]), -1)
}

// Late tells whether there may be entries for one of the next tokens, at least two: what they are may depend on a token that is not known yet.
func (e *Edits) Late(tokens int) bool { return e != nil && (e.changes || e.closing.near(tokens)) }

// change changes why a logit changes.
func (e *Edits) change(token int32, by func(*cause)) {
	i := e.entry(token)
	by(&e.causes[i])
	e.settle(i)
}

// repeat puts offsets of DRY in the place of those before.
func (e *Edits) repeat(before, now []offset) {
	for _, o := range before {
		if i, ok := e.at[o.token]; ok {
			e.causes[i].sequence = 0
		}
	}
	for _, o := range now {
		e.change(o.token, func(c *cause) { c.sequence = o.value })
	}
	for _, o := range before {
		if i, ok := e.at[o.token]; ok {
			e.settle(i)
		}
	}
}

// entry is the entry of a token. A new one changes nothing.
func (e *Edits) entry(token int32) int {
	i, ok := e.at[token]
	if !ok {
		i = len(e.Token)
		e.at[token] = i
		e.Token, e.causes = append(e.Token, token), append(e.causes, cause{})
		e.Bias, e.Factor, e.Offset = append(e.Bias, 0), append(e.Factor, 1), append(e.Offset, 0)
	}
	return i
}

// settle makes an entry what its causes ask for. Where they ask for nothing it goes, and the last one takes its place.
func (e *Edits) settle(i int) {
	c := &e.causes[i]
	if *c == (cause{}) {
		last := len(e.Token) - 1
		e.at[e.Token[last]] = i
		delete(e.at, e.Token[i]) // which may be the last one
		e.Token[i], e.causes[i], e.Bias[i], e.Factor[i], e.Offset[i] = e.Token[last], e.causes[last], e.Bias[last], e.Factor[last], e.Offset[last]
		e.Token, e.causes, e.Bias, e.Factor, e.Offset = e.Token[:last], e.causes[:last], e.Bias[:last], e.Factor[:last], e.Offset[:last]
		return
	}
	e.Bias[i], e.Factor[i], e.Offset[i] = c.bias, 1, c.sequence+c.known
	if c.bans > 0 {
		e.Bias[i] = float32(math.Inf(-1))
	}
	if c.seen > 0 {
		e.Factor[i] = e.params.RepetitionPenalty
	}
	if c.count > 0 {
		e.Offset[i] += -e.params.FrequencyPenalty*float32(c.count) - e.params.PresencePenalty
	}
}
