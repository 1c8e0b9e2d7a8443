package model

import "github.com/atlas-inference/atlas/atlasrt/op"

// Drafter guesses the tokens that come behind those that a step draws. The next step computes the guesses as further rows of their sequences,
// and op.Accept keeps those that it draws itself: a drafter decides how many tokens a step gives, never which.
type Drafter interface {
	// Memory is what the drafter keeps between steps, in the blocks and slots that the model's own memory has.
	Memory() []Memory
	// Draft is queued behind sampling and op.Accept, in every step, also in one that draws nothing: then it only takes the step's rows in. It
	// only queues. What it launches may be recorded and replayed: in may have changed by then, but for addresses and sizes.
	Draft(q op.Stream, in *Drafting)
}

// Drafting is what a Drafter knows of a step, and what it writes. The chunks are those that a token was drawn of, in the order of the step's
// sequences; padding has Last -1.
type Drafting struct {
	Step   *Inputs    // of the forward pass. Rows of drafts that do not count are among its rows: the next step writes the same positions again
	Memory [][]op.Ptr // the arrays of each entry of the drafter's Memory

	Behind op.Ptr // i32 [Step.Rows]: the token behind each row: of the prompt, or drawn
	Last   op.Ptr // i32 [Chunks]: the row that a chunk's last draw that counts was made from
	Next   op.Ptr // i32 [Drafts+1:Pitch,Chunks]: in row 0 that draw; the drafter writes Drafts further rows, each the tokens behind the row before

	// The rows of passes behind the first draft, one of each chunk in a pass: see op.DraftRows. There are Drafts-1 such passes.
	Positions op.Ptr // i32 [Drafts-1:Pitch,Chunks]
	Slots     op.Ptr // i32 [Drafts-1:Pitch,Chunks]
	Lengths   op.Ptr // i32 [Drafts-1:Pitch,Step.Seqs]
	Starts    op.Ptr // i32 [Step.Seqs+1]: a sequence has rows Starts[s] to Starts[s+1]-1 of each pass, which is one or none

	Chunks int32 // those that a token was drawn of; 0: nothing is to be drafted
	Drafts int32 // to be made behind each chunk; 0: none
	Pitch  int32 // words from one row of the arrays above to the next
}
