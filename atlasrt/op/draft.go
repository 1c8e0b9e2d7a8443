package op

// Drafting is what a step does behind its draws where sequences may have drafts: it counts the draws and lets a drafter make new drafts.
type Drafting interface {
	Accept(Stream, Accept)
	DraftRows(Stream, DraftRows)
	NormPair(Stream, NormPair)
	Lookup(Stream, Lookup)
}

// Accept finds out how many draws of each chunk count. Of a step whose rows have Tokens, Chunks chunks have Samples draws. Chunk n has draws
// Starts[n] to Starts[n+1]-1, in the order of their rows. Draw d was made from row Index[d]; the rows of all draws of a chunk but its first are
// drafts. A draw counts if all drafts of its chunk up to its row were drawn:
//
//	Counts[n] = c, the least from 1 on for which draw Starts[n]+c-1 is the chunk's last or is not the draft in the row behind it
//	Next[n]   = that draw, behind which the sequence goes on
//	Last[n]   = the row that it was made from
//	Behind[Index[d]] = Draws[d]	for each of its draws d
//
// A chunk without draws is padding: it has Counts 0, Next -1 and Last -1. A draw that is negative equals no draft.
//
// Since a draw depends on its row alone, the tokens that count are those that steps without drafts would draw. It is the rejection rule of
// Leviathan, Kalman and Matias 2023, https://arxiv.org/abs/2211.17192, for a drafter that gives its draft all of the probability: draft d is
// kept with the probability p(d) of being drawn, and what takes its place is drawn from the rest of p.
//
// With Force above 0, for measurements, chance decides in place of the draws: draw d counts as equal to the draft behind it where
// Uniform(AcceptSeed, Position[d]) < Force. The draw becomes that draft, so that the sequence is what its rows were.
type Accept struct {
	Counts   Ptr   `atlas:"out i32 [Chunks]"`
	Next     Ptr   `atlas:"out i32 [Chunks]"`
	Last     Ptr   `atlas:"out i32 [Chunks]"`
	Draws    Ptr   `atlas:"inout i32 [Samples]"` // Out of Sample
	Behind   Ptr   `atlas:"inout i32 [Rows]"`    // the token behind each row; those of rows that nothing is drawn from are given
	Starts   Ptr   `atlas:"in i32 [Chunks+1]"`
	Index    Ptr   `atlas:"in i32 [Samples]"` // negative: of padding
	Tokens   Ptr   `atlas:"in i32 [Rows]"`
	Position Ptr   `atlas:"in i32 [Samples]"` // of Sample
	Rows     int32 `atlas:"step"`
	Samples  int32 `atlas:"step"`
	Chunks   int32 `atlas:"step"`
	Force    float32
}

// AcceptSeed is the seed of the chances by which Accept is forced.
const AcceptSeed = 0x61636365707400

// DraftRows makes the inputs of the passes in which a head drafts one token after another. There are Passes of them, each over one row of each
// of the Chunks chunks that draw: row n of pass i stands i+1 tokens behind row Last[n] of the step. Of the step's Seqs sequences s has rows
// Starts[s] to Starts[s+1]-1 of each pass: one, or none where it does not draw. With p = StepPositions[Last[n]]+i+1:
//
//	Positions[i,n] = p
//	Slots[i,n]     = Tables[s,p/BlockSize]·BlockSize + p%BlockSize where p < Room[s], else -1
//	Lengths[i,s]   = min(p+1, Room[s])
//
// Room is how many tokens the blocks of a sequence hold; a row of Tables has MaxBlocks of them. Padding, whose Last is negative, has position 0,
// slot -1 and length 0, and a sequence without a row has length 0.
type DraftRows struct {
	Positions     Ptr   `atlas:"out i32 [Passes:Pitch,Chunks]"`
	Slots         Ptr   `atlas:"out i32 [Passes:Pitch,Chunks]"`
	Lengths       Ptr   `atlas:"out i32 [Passes:Pitch,Seqs]"`
	Last          Ptr   `atlas:"in i32 [Chunks]"`
	StepPositions Ptr   `atlas:"in i32 [Rows]"`
	Starts        Ptr   `atlas:"in i32 [Seqs+1]"`
	Tables        Ptr   `atlas:"in i32 [Seqs,MaxBlocks]"`
	Room          Ptr   `atlas:"in i32 [Seqs]"`
	Rows          int32 `atlas:"step"`
	Chunks        int32 `atlas:"step"`
	Seqs          int32 `atlas:"step"`
	MaxBlocks     int32 `atlas:"step"`
	Passes        int32 `atlas:"step"`
	Pitch         int32 // at least Chunks and Seqs
	BlockSize     int32
	_             int32
}

// NormPair normalises two rows as RMSNorm does and puts them side by side, as a drafting head reads them: the embedding of a token, and the
// hidden state of the row before it.
//
//	Out[r] = [RMSNorm(In[r], Scale), RMSNorm(Other[Index[r]], OtherScale)]
//
// Where Index is zero, Index[r] is r. An index outside the OtherRows rows of Other gives zeros.
type NormPair struct {
	Out        Ptr   `atlas:"out act [Rows,2*Cols]"`
	In         Ptr   `atlas:"in act [Rows,Cols]"`
	Other      Ptr   `atlas:"in act [OtherRows,Cols]"`
	Index      Ptr   `atlas:"in? i32 [Rows]"`
	Scale      Ptr   `atlas:"in f32 [Cols]"`
	OtherScale Ptr   `atlas:"in f32 [Cols]"`
	Rows       int32 `atlas:"step"`
	OtherRows  int32 `atlas:"step"`
	Cols       int32
	Eps        float32
}

// Lookup replaces numbers by those that a table has for them: IDs[r] = Table[IDs[r]]. A number outside the table becomes -1.
type Lookup struct {
	IDs   Ptr   `atlas:"inout i32 [Rows]"`
	Table Ptr   `atlas:"in i32 [Count]"`
	Rows  int32 `atlas:"step"`
	Count int32
}
