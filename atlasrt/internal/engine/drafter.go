package engine

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Drafter says how many of a step's draws count, and guesses the tokens that come behind them. It only queues: the tokens, their counts and
// the drafts are on the device, and the next step takes them from there.
type Drafter interface {
	// Draft is queued behind sampling. What it launches may be recorded and replayed, and in may have changed by then, but for addresses and
	// sizes.
	Draft(q op.Stream, in *Drafting)
}

// Drafting is what a Drafter knows of a step, and what it writes. The chunks are those that a token was drawn of, in the order of the step's
// sequences; padding has no draws.
type Drafting struct {
	Step   *model.Inputs // of the forward pass
	Draws  op.Ptr        // i32 [Starts[Chunks]]: the tokens that were drawn; draw d from row Step.Index[d]; -1: there was nothing to draw
	Starts op.Ptr        // i32 [Chunks+1]: chunk n has draws Starts[n] to Starts[n+1]-1. The rows of all but the first are drafts
	Counts op.Ptr        // i32 [Chunks], to be written: how many draws of a chunk count, from 1 on. One does where all drafts before it were drawn
	Next   op.Ptr        // i32 [Chunks,Most], to be written: the last draw that counts, and Most-1 drafts of what comes behind it
	Chunks int32         // those that a token was drawn of
	Most   int32         // tokens that a step draws of one sequence at most
}
