package sched

// Chunk is what a step computes of one sequence: Rows tokens from Start on.
//
// A chunk whose last known token is the sequence's last one draws: a token from the logits of each of its last Draws rows. The rows behind the
// first of these are drafts, which lie on the device alone.
type Chunk struct {
	Sequence    *Sequence // whose tokens they are
	Start, Rows int
	Outputs     int  // how many of its last rows need logits: 0, Draws or Rows
	Draws       int  // how many of its last rows a token is drawn from; 0: none
	Follows     int  // the chunk of the step in flight whose count decides where this one starts, by its number among those that draw; -1: none
	Slack       int  // where it follows one, by how much it may start behind Start, which is the least; otherwise 0
	Drafted     int  // the chunk of the step before that its drafts were made behind, by its number among those that draw; -1: it has no drafts
	Accepted    int  // drafts of the sequence's chunk before that were right; 0 where Follows will tell
	Counted     int  // set by Done: tokens that the sequence got
	Dropped     bool // set by Drop and Repeat: nobody wants what it draws
	Again       bool // set by Repeat: its last row is computed again
	Surplus     bool // set by Done: the sequence had already ended, so that the result is dropped
}

// known is how many rows the sequence has from it, whatever is drawn.
func (c *Chunk) known() int {
	if c.Again {
		return c.Rows - c.Drafts() - 1
	}
	return c.Rows - c.Drafts()
}

// Drafts is how many of the last rows are drafts.
func (c *Chunk) Drafts() int { return max(c.Draws-1, 0) }

// Plan is one step. It has at most one chunk of each sequence. It is valid until Next is called after its Done.
type Plan struct {
	Chunks               []Chunk // those that decode first, then chunks of prompts
	Rows, Outputs, Draws int     // sums over Chunks
	Drawing              int     // chunks that draw
	Most                 int     // draws of one chunk, at most: one more than the step before makes drafts behind each
	Drafts               int     // to be made behind each chunk that draws, for the next step

	waits bool // its logits are read before the next step is planned
}

// Decode tells whether every chunk draws as many tokens as it has rows: no chunk belongs to a prompt of several rows.
func (p *Plan) Decode() bool { return len(p.Chunks) > 0 && p.Rows == p.Draws }

// Results is what a step gave.
type Results struct {
	Tokens []int32 // the draws of each chunk, in order; negative where there was nothing to draw
	Counts []int32 // how many of its draws count, for each chunk that draws; nil: one each
	Err    error   // the whole step failed
}
