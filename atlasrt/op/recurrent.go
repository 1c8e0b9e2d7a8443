package op

// Recurrent is what layers ask that keep a state for each sequence in place of keys and values.
//
// Rows are ragged as in PagedAttention: sequence s has rows Starts[s] to Starts[s+1]-1, the last of its Lengths[s] tokens, so that its first row
// stands at position Lengths[s] - (Starts[s+1]-Starts[s]). A layer's states lie in Slots slots: sequence s has slot Slot[s], and none where
// that is negative (padding, whose rows Out keeps as they were). A sequence that starts at position 0 begins from zeros, whatever its
// slot holds. The slot keeps the state after the last row.
//
// The last Drafts[s] rows of a sequence may be drafts: rows of tokens that may turn out wrong, at most MaxDrafts and fewer than all. They are
// computed like the others, but the slot keeps the state before them and, in a journal, what leads from there over each of them. The next step
// of the sequence says with Accepted[s] how many of them were right: it starts behind those, and makes the state there from the journal.
// Where Drafts and Accepted are zero there are none. Where both are positive, a sequence has one row before its drafts.
//
// Rings are addressed by position. So no row of a journal is written that the same step reads, nor of a convolution's inputs where a sequence
// has at most 1+MaxDrafts rows: blocks need not wait for each other. In steps of more rows a convolution reads its ring before it writes it.
type Recurrent interface {
	CausalConv(Stream, CausalConv)
	DeltaRule(Stream, DeltaRule)
	GatedNorm(Stream, GatedNorm)
}

// CausalConv convolves each channel of a sequence with its Width latest inputs: Out[r,c] = silu(Σ_j Filter[c,j]·x(t-Width+1+j,c) + Bias[c]) with
// silu(x) = x/(1+e⁻ˣ), where row r stands at position t and x(t) is the row of In at that position; before the first token x is zero.
//
// A slot of State is a ring of the latest inputs, drafts included: x(t) lies in row t%(Width+MaxDrafts). A step stores as many of its last rows
// as the ring holds. Rows of In have Channels columns and lie InPitch elements apart. Starts, Lengths, Slot, Seqs and Slots are those of Recurrent.
type CausalConv struct {
	Out       Ptr   `atlas:"out act [Rows,Channels]"`
	In        Ptr   `atlas:"in act [Rows:InPitch,Channels]"`
	Filter    Ptr   `atlas:"in f32 [Channels,Width]"`
	Bias      Ptr   `atlas:"in? f32 [Channels]"`
	State     Ptr   `atlas:"inout act [Slots,Width+MaxDrafts,Channels]"`
	Starts    Ptr   `atlas:"in i32 [Seqs+1]"`
	Lengths   Ptr   `atlas:"in i32 [Seqs]"`
	Slot      Ptr   `atlas:"in i32 [Seqs]"`
	Rows      int32 `atlas:"step"`
	Seqs      int32 `atlas:"step"`
	Slots     int32 `atlas:"step"`
	MaxDrafts int32
	Channels  int32
	Width     int32
	InPitch   int32
	_         int32
}

// DeltaRule is the gated delta rule. Value head h has a state S of ValueDim rows and KeyDim columns, and reads key head h/r, or h%KeyHeads where
// Tiled is not 0, with r = ValueHeads/KeyHeads. A row of QKV holds KeyHeads queries, as many keys, and ValueHeads values; a row of Gates
// holds b and then a of each value head. For each row in its order, with q, k, v, b and a of head h:
//
//	q' = q/√(Σq² + Eps)/√KeyDim,  k' = k/√(Σk² + Eps),  β = 1/(1+e⁻ᵇ),  α = exp(Decay[h]·ln(1+e^(a+Bias[h])))
//	S ← α·S,  δ = β·(v - S·k'),  S ← S + δ⊗k',  Out[r,h] = S·q'
//
// A slot of State holds S of each value head, and one of Journal the rows of drafts: that of a draft at position t is t%(2·MaxDrafts+1); it holds
// k' of the key heads, then δ of the value heads, then α of the value heads. Rows of Gates lie GatesPitch elements apart. Starts, Lengths, Slot,
// Drafts, Accepted, Seqs and Slots are those of Recurrent. Source: Yang et al. 2024, https://arxiv.org/abs/2412.06464.
type DeltaRule struct {
	Out        Ptr   `atlas:"out act [Rows,ValueHeads*ValueDim]"`
	QKV        Ptr   `atlas:"in act [Rows,2*KeyHeads*KeyDim+ValueHeads*ValueDim]"`
	Gates      Ptr   `atlas:"in act [Rows:GatesPitch,2*ValueHeads]"`
	Decay      Ptr   `atlas:"in f32 [ValueHeads]"`
	Bias       Ptr   `atlas:"in f32 [ValueHeads]"`
	State      Ptr   `atlas:"inout f32 [Slots,ValueHeads,ValueDim,KeyDim]"`
	Journal    Ptr   `atlas:"inout? f32 [Slots,2*MaxDrafts+1,KeyHeads*KeyDim+ValueHeads*(ValueDim+1)]"`
	Starts     Ptr   `atlas:"in i32 [Seqs+1]"`
	Lengths    Ptr   `atlas:"in i32 [Seqs]"`
	Slot       Ptr   `atlas:"in i32 [Seqs]"`
	Drafts     Ptr   `atlas:"in? i32 [Seqs]"`
	Accepted   Ptr   `atlas:"in? i32 [Seqs]"`
	Rows       int32 `atlas:"step"`
	Seqs       int32 `atlas:"step"`
	Slots      int32 `atlas:"step"`
	MaxDrafts  int32
	KeyHeads   int32
	ValueHeads int32
	KeyDim     int32
	ValueDim   int32
	GatesPitch int32
	Tiled      int32
	Eps        float32
	_          int32
}

// Gate is the function that a gate goes through before it multiplies.
type Gate int32

// Gates.
const (
	GateSilu    Gate = iota // x/(1+e⁻ˣ)
	GateSigmoid             // 1/(1+e⁻ˣ)
)

// GatedNorm normalises each head of a row and then gates it: Out[r,h,i] = In[r,h,i]·Scale[i]/√(mean_i In[r,h,i]² + Eps)·g(Z[r,h,i]), where g is the
// function that Gate names. Rows of Z lie ZPitch elements apart.
type GatedNorm struct {
	Out     Ptr   `atlas:"out act [Rows,Heads*HeadDim]"`
	In      Ptr   `atlas:"in act [Rows,Heads*HeadDim]"`
	Z       Ptr   `atlas:"in act [Rows:ZPitch,Heads*HeadDim]"`
	Scale   Ptr   `atlas:"in f32 [HeadDim]"`
	Rows    int32 `atlas:"step"`
	Heads   int32
	HeadDim int32
	ZPitch  int32
	Gate    Gate
	Eps     float32
}

// DeltaNet is CausalConv without bias, DeltaRule and GatedNorm: the whole of a layer between its projections. A row of In holds the queries, keys
// and values before the convolution, then z, then b and a: see DeltaRule and GatedNorm. Filter, Width and MaxDrafts are those of CausalConv, whose
// State is Window here; Scale and Gate are those of GatedNorm, whose Eps is NormEps here. Decay, Bias, State, Journal, KeyHeads, ValueHeads, KeyDim,
// ValueDim, Tiled and Eps are those of DeltaRule, and Starts, Lengths, Slot, Drafts, Accepted, Seqs and Slots those of Recurrent.
type DeltaNet struct {
	Out        Ptr   `atlas:"out act [Rows,ValueHeads*ValueDim]"`
	In         Ptr   `atlas:"in act [Rows,2*KeyHeads*KeyDim+2*ValueHeads*ValueDim+2*ValueHeads]"`
	Filter     Ptr   `atlas:"in f32 [2*KeyHeads*KeyDim+ValueHeads*ValueDim,Width]"`
	Decay      Ptr   `atlas:"in f32 [ValueHeads]"`
	Bias       Ptr   `atlas:"in f32 [ValueHeads]"`
	Scale      Ptr   `atlas:"in f32 [ValueDim]"`
	Window     Ptr   `atlas:"inout act [Slots,Width+MaxDrafts,2*KeyHeads*KeyDim+ValueHeads*ValueDim]"`
	State      Ptr   `atlas:"inout f32 [Slots,ValueHeads,ValueDim,KeyDim]"`
	Journal    Ptr   `atlas:"inout? f32 [Slots,2*MaxDrafts+1,KeyHeads*KeyDim+ValueHeads*(ValueDim+1)]"`
	Starts     Ptr   `atlas:"in i32 [Seqs+1]"`
	Lengths    Ptr   `atlas:"in i32 [Seqs]"`
	Slot       Ptr   `atlas:"in i32 [Seqs]"`
	Drafts     Ptr   `atlas:"in? i32 [Seqs]"`
	Accepted   Ptr   `atlas:"in? i32 [Seqs]"`
	Rows       int32 `atlas:"step"`
	Seqs       int32 `atlas:"step"`
	Slots      int32 `atlas:"step"`
	MaxDrafts  int32
	KeyHeads   int32
	ValueHeads int32
	KeyDim     int32
	ValueDim   int32
	Width      int32
	Tiled      int32
	Gate       Gate
	Eps        float32
	NormEps    float32
	_          int32
}
