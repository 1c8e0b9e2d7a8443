package op

// Attention is softmax attention over a paged cache.
type Attention interface {
	RotaryAngles(Stream, RotaryAngles)
	RotaryCache(Stream, RotaryCache)
	PagedAttention(Stream, PagedAttention)
	SigmoidGate(Stream, SigmoidGate)
}

// RotaryAngles makes the table of cosines and sines that RotaryCache reads. For frequency j of row r the angle is
// a = Positions[Axis[j],r]·Frequency[j]; Out[r,j] = Scale·cos a and Out[r,Pairs+j] = Scale·sin a.
//
// It depends on the step and not on the layer, so that one call serves all layers. A token may have several positions, Axes of them (time,
// height, width): Axis names the one of each frequency; without Axis all take the first. Pairs is how many pairs of elements of a head
// are rotated. Source: Su et al. 2021, https://arxiv.org/abs/2104.09864.
type RotaryAngles struct {
	Out       Ptr   `atlas:"out f32 [Rows,2*Pairs]"`
	Positions Ptr   `atlas:"in i32 [Axes,Rows]"`
	Frequency Ptr   `atlas:"in f32 [Pairs]"`
	Axis      Ptr   `atlas:"in? i32 [Pairs]"`
	Rows      int32 `atlas:"step"`
	Axes      int32
	Pairs     int32
	Scale     float32
}

// Pairing tells which two elements of a head are rotated together.
type Pairing int32

// Pairings: element i with i+Pairs (rotate half), or 2i with 2i+1 (neighbours).
const (
	PairHalf Pairing = iota
	PairNeighbours
)

// RotaryCache rotates the queries and keys of each row by the angles of its position, and stores keys and values in the cache.
//
// A row of QKV holds Heads query heads, KVHeads key heads and KVHeads value heads of HeadDim elements, and perhaps more: rows lie QKVPitch
// elements apart. Where QNorm and
// KNorm are given, each query and key head is first divided by its root mean square and scaled (as RMSNorm does). The
// first 2·Pairs elements of a head are rotated, two and two as Pairing says, by Angles, which RotaryAngles made; the others stay. Queries
// and keys are rotated in place. Key and value are written to the cache slot Slots[r] = block·BlockSize + offset; a negative slot writes
// nothing.
type RotaryCache struct {
	QKV       Ptr   `atlas:"inout act [Rows:QKVPitch,(Heads+2*KVHeads)*HeadDim]"`
	K         Ptr   `atlas:"inout KVType [Blocks,KVHeads,BlockSize,HeadDim]"`
	V         Ptr   `atlas:"inout KVType [Blocks,KVHeads,BlockSize,HeadDim]"`
	Angles    Ptr   `atlas:"in f32 [Rows,2*Pairs]"`
	Slots     Ptr   `atlas:"in i32 [Rows]"`
	QNorm     Ptr   `atlas:"in? f32 [HeadDim]"`
	KNorm     Ptr   `atlas:"in? f32 [HeadDim]"`
	Rows      int32 `atlas:"step"`
	QKVPitch  int32
	Heads     int32
	KVHeads   int32
	HeadDim   int32
	Pairs     int32
	Blocks    int32 `atlas:"step"`
	BlockSize int32
	Pairing   Pairing
	KVType    DType
	Eps       float32
	_         int32
}

// PagedAttention attends over the cached keys of each row's own sequence, the row's own key included.
//
// Rows are ragged: each of Seqs sequences brings as many as it likes. Sequence s has rows Starts[s] … Starts[s+1]-1, which are the last of
// its Lengths[s] tokens. So row r stands at position p = Lengths[s] - (Starts[s+1] - r), and sees positions max(0, p-Window+1) … p
// (Window 0: all). Token t of sequence s lies in block Tables[s,t/BlockSize]; a row of Tables has room for MaxBlocks. Query head h reads
// key head h/(Heads/KVHeads): Out[r,h] = Σ_t softmax_t(Scale·Q[r,h]·K[t])·V[t]. Rows past Starts[Seqs] are padding, and Out keeps what it
// held there.
type PagedAttention struct {
	Out       Ptr   `atlas:"out act [Rows,Heads*HeadDim]"`
	Q         Ptr   `atlas:"in act [Rows:QPitch,Heads*HeadDim]"`
	K         Ptr   `atlas:"in KVType [Blocks,KVHeads,BlockSize,HeadDim]"`
	V         Ptr   `atlas:"in KVType [Blocks,KVHeads,BlockSize,HeadDim]"`
	Starts    Ptr   `atlas:"in i32 [Seqs+1]"`
	Lengths   Ptr   `atlas:"in i32 [Seqs]"`
	Tables    Ptr   `atlas:"in i32 [Seqs,MaxBlocks]"`
	Rows      int32 `atlas:"step"`
	QPitch    int32
	Seqs      int32 `atlas:"step"`
	MaxBlocks int32 `atlas:"step"`
	Heads     int32
	KVHeads   int32
	HeadDim   int32
	Blocks    int32 `atlas:"step"`
	BlockSize int32
	Window    int32
	KVType    DType
	Scale     float32
}

// SigmoidGate is the output gate of attention: Out[r,c] = In[r,c]/(1+e^-Gate[r,c]). Out may be In. Rows of Gate lie GatePitch elements apart.
type SigmoidGate struct {
	Out       Ptr   `atlas:"out act [Rows,Cols]"`
	In        Ptr   `atlas:"in act [Rows,Cols]"`
	Gate      Ptr   `atlas:"in act [Rows:GatePitch,Cols]"`
	Rows      int32 `atlas:"step"`
	Cols      int32
	GatePitch int32
	_         int32
}
