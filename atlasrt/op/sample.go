package op

// Sampler chooses tokens, and makes a step's inputs of those that the step before chose.
type Sampler interface {
	Sample(Stream, Sample)
	Resolve(Stream, Resolve)
	Advance(Stream, Advance)
}

// Sample draws one token per row from its Logits over a vocabulary of Vocab tokens. It goes through these steps in this order:
//
//  1. Where MaskRow[r] is not negative, tokens whose bit is 0 in that row of Mask, of Masks rows, are ruled out. Mask and MaskRow are given
//     together or not.
//  2. Each edit e of the row, from EditStarts[r] to EditStarts[r+1]-1 of all Edits, changes the logit z of token EditToken[e]:
//     z' = z + EditBias; then z' / EditFactor where z' > 0, else z'·EditFactor; then + EditOffset.
//  3. Where the entropy of the distribution that logits make now is less than MinEntropy, in nats, Temperature counts as 0. A MinEntropy of 0
//     asks for nothing.
//  4. Temperature 0 takes the largest logit (the lowest id where two tie), and that is the result.
//  5. TopNSigma n > 0 rules out logits less than the largest - n·σ, where σ is the standard deviation of all that are not ruled out yet
//     (Tang et al. 2024, arXiv:2411.07641).
//  6. Logits are divided by Temperature.
//  7. MinP m rules out logits less than the largest + ln m.
//  8. TopK k > 0 keeps the k largest (the lower id where two tie).
//  9. TopP p keeps the fewest tokens, the most likely first, whose probabilities sum to at least p.
//  10. Where Coin(Seed[r], Position[r]) < XTCProbability, and two or more of the tokens that are left have a probability of at least
//     XTCThreshold, these are ruled out but for the last of them ("exclude top choices", of text-generation-webui). Probabilities less than
//     2⁻⁴⁰ of the largest need not be told from 0.
//  11. One of the tokens that are left is drawn by inverting their cumulative distribution, the most likely first, at
//     u = Uniform(Seed[r], Position[r]).
//
// So a draw depends on the row alone, never on the batch. A row whose logits are all ruled out or not finite gives -1.
type Sample struct {
	Out            Ptr   `atlas:"out i32 [Rows]"`
	Logits         Ptr   `atlas:"in f32 [Rows,Vocab]"`
	Mask           Ptr   `atlas:"in? u32 [Masks,(Vocab+31)/32]"`
	MaskRow        Ptr   `atlas:"in? i32 [Rows]"`
	Temperature    Ptr   `atlas:"in f32 [Rows]"`
	TopP           Ptr   `atlas:"in f32 [Rows]"`
	MinP           Ptr   `atlas:"in f32 [Rows]"`
	TopNSigma      Ptr   `atlas:"in f32 [Rows]"`
	MinEntropy     Ptr   `atlas:"in f32 [Rows]"`
	XTCProbability Ptr   `atlas:"in f32 [Rows]"`
	XTCThreshold   Ptr   `atlas:"in f32 [Rows]"`
	TopK           Ptr   `atlas:"in i32 [Rows]"`
	Seed           Ptr   `atlas:"in i64 [Rows]"`
	Position       Ptr   `atlas:"in i32 [Rows]"`
	EditStarts     Ptr   `atlas:"in i32 [Rows+1]"`
	EditToken      Ptr   `atlas:"in i32 [Edits]"`
	EditBias       Ptr   `atlas:"in f32 [Edits]"`
	EditFactor     Ptr   `atlas:"in f32 [Edits]"`
	EditOffset     Ptr   `atlas:"in f32 [Edits]"`
	Rows           int32 `atlas:"step"`
	Vocab          int32
	Edits          int32 `atlas:"step"`
	Masks          int32 `atlas:"step"`
}

// Likeliest is a call that takes the likeliest token of each row, whatever else Sample can do. zeros has 2·rows+1 words of zero.
func Likeliest(out, logits, zeros Ptr, rows, vocab int32) Sample {
	z := zeros
	return Sample{
		Out: out, Logits: logits, Temperature: z, TopP: z, MinP: z, TopNSigma: z, MinEntropy: z, XTCProbability: z, XTCThreshold: z, TopK: z, Seed: z, Position: z,
		EditStarts: z, EditToken: z, EditBias: z, EditFactor: z, EditOffset: z, Rows: rows, Vocab: vocab,
	}
}

// Resolve copies a step's inputs, Count words, to where its kernels read them, which may be where they are: Out[i] = In[i]. The first Rows
// words are tokens. A negative one refers to a token that the step before left for this one, sampled or drafted: Out[r] = Sampled[-1-In[r]]. A
// reference past the Samples tokens gives -1.
//
// So a step can be queued before the host knows the tokens of the step before, and drafts need never come to the host.
type Resolve struct {
	Out     Ptr   `atlas:"out i32 [Count]"`
	In      Ptr   `atlas:"in i32 [Count]"`
	Sampled Ptr   `atlas:"in i32 [Samples]"`
	Count   int32 `atlas:"step"` // not less than Rows
	Rows    int32 `atlas:"step"`
	Samples int32
	_       int32
}

// Advance moves sequences to where they start once the step before has counted its draws. There are Seqs sequences, ragged as in
// PagedAttention: s has rows Starts[s] to Starts[s+1]-1, and its blocks in a row of Tables, which has room for MaxBlocks. Where Follows[s] is
// negative, or not below Chunks, all stays as it is. Another one was queued as if one draw of chunk Follows[s] counted, so that it starts
// n = Counts[Follows[s]]-1 tokens further on:
//
//	Lengths[s] += n,  Accepted[s] = n
//	Positions[r] += n,  Slots[r] = Tables[s,p/BlockSize]·BlockSize + p%BlockSize with p = Positions[r]	for their rows r
//	DrawPositions[r] += n
//
// A token is drawn from each of their rows, and these draws, of Draws in all, have the numbers of the rows. Accepted is what Recurrent calls so.
type Advance struct {
	Positions     Ptr   `atlas:"inout i32 [Rows]"`
	Slots         Ptr   `atlas:"inout i32 [Rows]"`
	DrawPositions Ptr   `atlas:"inout i32 [Draws]"` // Position of Sample
	Lengths       Ptr   `atlas:"inout i32 [Seqs]"`
	Accepted      Ptr   `atlas:"inout i32 [Seqs]"`
	Starts        Ptr   `atlas:"in i32 [Seqs+1]"`
	Tables        Ptr   `atlas:"in i32 [Seqs,MaxBlocks]"`
	Follows       Ptr   `atlas:"in i32 [Seqs]"`
	Counts        Ptr   `atlas:"in i32 [Chunks]"` // from 1
	Rows          int32 `atlas:"step"`
	Draws         int32 `atlas:"step"`
	Seqs          int32 `atlas:"step"`
	MaxBlocks     int32 `atlas:"step"`
	Chunks        int32
	BlockSize     int32
}

// Uniform is the random number in [0,1) that belongs to a seed and a position: the top 24 bits of two rounds of
// splitmix64's finaliser over seed + 0x9e3779b97f4a7c15·(position+1).
func Uniform(seed int64, position int32) float32 {
	x := uint64(seed) + 0x9e3779b97f4a7c15*(uint64(uint32(position))+1)
	for range 2 {
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return float32(x>>40) / (1 << 24)
}

// coinStream sets the random numbers of Coin apart from those of draws. It is the multiplier of xorshift64*; any odd number would do.
const coinStream = 0x2545f4914f6cdd1d

// Coin is another random number in [0,1) of a seed and a position, independent of Uniform's: it decides whether XTC applies to a draw.
func Coin(seed int64, position int32) float32 { return Uniform(seed^coinStream, position) }
