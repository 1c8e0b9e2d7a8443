package engine

import (
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// task is a request on its way through the engine. After Submit only the engine's goroutine touches it.
type task struct {
	request  Request
	sequence sched.Sequence
	edits    *sample.Edits
	guide    *guide   // nil where there is no grammar
	allowed  []uint32 // mask of the tokens that the request allows; nil: all

	inbox   *Inbox
	number  int                   // among the requests of its Submit
	draws   int                   // that a step may make of it, see Config
	stop    func() bool           // ends the watch over the context of its Submit
	scored  []sample.TokenLogProb // of the prompt, so far
	started bool                  // its first event is on its way
	drafts  Drafts                // so far

	submitted, launched, first time.Time // launched is of the first step that it is in, first when it had a token
}

// newTask makes a task of a request that was checked, for a model with so many tokens and steps with so many draws of a sequence.
func newTask(r Request, vocab int32, draws int) *task {
	r.Prompt, r.End = slices.Clone(r.Prompt), slices.Clone(r.End) // the caller may change its own
	t := &task{request: r, draws: draws, submitted: time.Now()}
	t.sequence = sched.Sequence{Tokens: r.Prompt, MaxTokens: r.MaxTokens, End: r.End, Score: r.PromptLogProbs, Waits: r.LogProbs >= 0, Salt: r.CacheSalt}
	var hold []int32
	if r.MinTokens > 0 {
		hold = r.End
	}
	if len(r.Sampling.Allowed) > 0 {
		t.allowed = make([]uint32, maskWords(vocab))
		for _, token := range r.Sampling.Allowed {
			t.allowed[token/32] |= 1 << (token % 32)
		}
	}
	t.guide = newGuide(&t.request, t.allowed, vocab, draws)
	t.edits = sample.NewEdits(r.Sampling, vocab, r.Prompt, hold, r.Budget)
	t.sequence.Single = t.single()
	return t
}

// send hands an event over. The last one of a Submit ends the watch over its context.
func (t *task) send(e Event) {
	e.Request = t.number
	if t.inbox.Put(e) {
		t.stop()
	}
}

// late tells whether a step that draws of the task needs late inputs: tokens of the step in flight, and those that this one draws, may decide
// what is edited or masked.
func (t *task) late() bool { return t.guide != nil || t.allowed != nil || t.edits.Late(2*t.draws) }

// mask is the tokens that may be drawn next, or behind so many drafts; nil: all, or nobody wants what is drawn.
func (t *task) mask(drafts int) []uint32 {
	switch {
	case t.guide == nil:
		return t.allowed
	case !t.guide.ready || drafts >= t.guide.rows:
		return nil
	}
	return t.guide.masks[drafts]
}

// rulesOut tells whether a token cannot be drawn next.
func (t *task) rulesOut(token int32) bool {
	return t.edits.RulesOut(token) || t.allowed != nil && t.allowed[token/32]>>(token%32)&1 == 0
}

// single tells whether a step draws one token of the task at most, since the edits of several would be too many, or look back at more than can be
// copied. Those of two steps may come before they are made.
func (t *task) single() bool {
	return t.edits != nil && (t.edits.LookBack() || t.edits.Len()+2*t.draws > mostAhead)
}

// wantsLogits tells whether the host needs the logits of a chunk's outputs.
func (t *task) wantsLogits(c sched.Chunk) bool {
	return scoredRows(c) > 0 || c.Draws > 0 && t.request.LogProbs >= 0
}
