package sample

// WholeContext is the Window of penalties that look at all tokens so far, those of the prompt too.
const WholeContext = -1

// Penalises tells whether a penalty changes the logits of tokens that were seen before.
func (p *Params) Penalises() bool {
	return p.RepetitionPenalty != 1 || p.FrequencyPenalty != 0 || p.PresencePenalty != 0
}

// penalise takes the prompt into account.
func (e *Edits) penalise(prompt []int32) {
	if n := int(e.params.Window); n > 0 {
		prompt = prompt[max(len(prompt)-n, 0):]
	}
	if e.params.RepetitionPenalty == 1 && e.params.Window == 0 {
		return // the others do not look at it
	}
	for _, token := range prompt {
		e.occurs(token, 1, e.params.Window != 0)
	}
}

// penaliseNext takes a generated token into account, which is part of the context already.
func (e *Edits) penaliseNext(token int32) {
	e.occurs(token, 1, true)
	if n := int(e.params.Window); n > 0 && len(e.context) > n {
		e.occurs(e.context[len(e.context)-n-1], -1, true)
	}
}

// occurs counts a token that enters, or leaves, what penalties look at. Frequency and presence may not look at the prompt.
func (e *Edits) occurs(token, by int32, counts bool) {
	repeats := e.params.RepetitionPenalty != 1
	counts = counts && (e.params.FrequencyPenalty != 0 || e.params.PresencePenalty != 0)
	if !repeats && !counts {
		return
	}
	e.change(token, func(c *cause) {
		if repeats {
			c.seen += by
		}
		if counts {
			c.count += by
		}
	})
}
