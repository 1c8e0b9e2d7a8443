package engine

import "github.com/atlas-inference/atlas/atlasrt/internal/sample"

// late is the late inputs of one draw, which may depend on all tokens before it.
type late struct {
	edits sample.Entries
	mask  []uint32 // nil: there is none
}

// lookahead is memory for the edits of draws behind drafts.
type lookahead struct {
	edits sample.Edits   // of one sequence, as if its drafts were right
	kept  sample.Entries // of all draws
}

// mostAhead is how many logits a sequence may edit at most where it has drafts: the edits of each draw are sent.
const mostAhead = 4096

// findLate finds the late inputs of a step's draws. left is what the step before left: see runner.next. Those of a draw behind a draft are as they
// are where the draft is right; where it is not, the draw does not count.
func (l *launches) findLate(left []int32, a *lookahead) {
	a.kept = sample.Entries{Token: a.kept.Token[:0], Bias: a.kept.Bias[:0], Factor: a.kept.Factor[:0], Offset: a.kept.Offset[:0]}
	l.rows = l.rows[:0]
	for i := range l.chunks {
		c, t := &l.chunks[i], l.tasks[i]
		if c.Draws == 0 {
			continue
		}
		l.rows = append(l.rows, late{t.edits.Now(), t.mask(0)})
		if c.Drafts() == 0 {
			continue
		}
		edits := t.edits.Late(c.Draws)
		if edits {
			t.edits.Copy(&a.edits)
		}
		for n := 1; n <= c.Drafts(); n++ {
			row := late{mask: t.mask(n)}
			if edits {
				a.edits.Append(left[n*l.pitch+c.Drafted])
				if len(t.sequence.Generated())+n == t.request.MinTokens {
					a.edits.LetGo()
				}
				row.edits = a.edits.Now().Keep(&a.kept)
			}
			l.rows = append(l.rows, row)
		}
	}
}
