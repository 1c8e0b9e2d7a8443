package op

// AttentionLayer is the attention half of a transformer's layer: NormLinear, RotaryCache, PagedAttention and Linear. Sum is
// In+Residual, and Out, which may be In, the attention of its norm, which the next half adds.
//
// W makes queries, keys and values of a row, Project the result of what its heads have mixed. Both are of one scheme.
// KVType, the cache and the sequences are those of PagedAttention, Pairing and the angles those of RotaryCache; turned keys
// and values of a row go to its slot before any row attends. Out may hold anything in rows past Starts[Seqs].
type AttentionLayer struct {
	Out       Ptr    `atlas:"out act [Rows,Project.Rows]"`
	Sum       Ptr    `atlas:"out? act [Rows,W.Cols]"`
	K         Ptr    `atlas:"inout KVType [Blocks,KVHeads,BlockSize,HeadDim]"`
	V         Ptr    `atlas:"inout KVType [Blocks,KVHeads,BlockSize,HeadDim]"`
	In        Ptr    `atlas:"in act [Rows,W.Cols]"`
	Residual  Ptr    `atlas:"in? act [Rows,W.Cols]"`
	Scale     Ptr    `atlas:"in f32 [W.Cols]"`
	Bias      Ptr    `atlas:"in? f32 [W.Rows]"`
	QNorm     Ptr    `atlas:"in? f32 [HeadDim]"`
	KNorm     Ptr    `atlas:"in? f32 [HeadDim]"`
	Angles    Ptr    `atlas:"in f32 [Rows,2*Pairs]"`
	Slots     Ptr    `atlas:"in i32 [Rows]"`
	Starts    Ptr    `atlas:"in i32 [Seqs+1]"`
	Lengths   Ptr    `atlas:"in i32 [Seqs]"`
	Tables    Ptr    `atlas:"in i32 [Seqs,MaxBlocks]"`
	W         Weight `atlas:"in"`
	Project   Weight `atlas:"in"`
	Rows      int32
	Heads     int32
	KVHeads   int32
	HeadDim   int32
	Pairs     int32
	Seqs      int32
	MaxBlocks int32
	Blocks    int32
	BlockSize int32
	Window    int32
	Pairing   Pairing
	KVType    DType
	Factor    float32 // PagedAttention's Scale
	Eps       float32
}

// FeedLayer is the gated network of a transformer's layer: GatedLinear and Linear. Sum is In+Residual, and Out the network
// of its norm; it may be In. W holds the rows of the gate and then those of the up projection; Down is of the same scheme.
type FeedLayer struct {
	Out      Ptr    `atlas:"out act [Rows,Down.Rows]"`
	Sum      Ptr    `atlas:"out? act [Rows,W.Cols]"`
	In       Ptr    `atlas:"in act [Rows,W.Cols]"`
	Residual Ptr    `atlas:"in? act [Rows,W.Cols]"`
	Scale    Ptr    `atlas:"in f32 [W.Cols]"`
	W        Weight `atlas:"in"`
	Down     Weight `atlas:"in"`
	Rows     int32
	Eps      float32
}

// MixtureLayer is the mixture of experts of a transformer's layer: NormRoute, ExpertUp and ExpertDown. Sum is In+Residual, and
// Out the experts' sum for its norm; it may be In. W and Down are stacks of one scheme, Router is a matrix of any.
type MixtureLayer struct {
	Out       Ptr    `atlas:"out act [Rows,Down.Rows]"`
	Sum       Ptr    `atlas:"out? act [Rows,W.Cols]"`
	In        Ptr    `atlas:"in act [Rows,W.Cols]"`
	Residual  Ptr    `atlas:"in? act [Rows,W.Cols]"`
	Scale     Ptr    `atlas:"in f32 [W.Cols]"`
	Bias      Ptr    `atlas:"in? f32 [W.Count]"`
	W         Weight `atlas:"in"`
	Down      Weight `atlas:"in"`
	Router    Weight `atlas:"in"`
	Rows      int32
	TopK      int32
	Normalise int32
	Routing   Routing
	Factor    float32
	Eps       float32
}
