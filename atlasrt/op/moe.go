package op

// MoE is a mixture of experts.
type MoE interface {
	Route(Stream, Route)
	ExpertUp(Stream, ExpertUp)
	ExpertDown(Stream, ExpertDown)
}

// Routing is how router logits become expert weights.
type Routing int32

// Routings: a softmax over all experts, or a sigmoid of each where Bias takes part in the choice but not in the weight.
const (
	RouteSoftmax Routing = iota
	RouteSigmoid
)

// Route picks TopK experts for each row, best first (the lower id where two tie), and groups the picks by expert.
//
// Weights[r,k] = Scale·score, divided by the sum of the row's chosen scores where Normalise is not 0. Pick p = r·TopK+k
// belongs to expert IDs[p]; Order lists all picks sorted by expert and then by p, and those of expert e are
// Order[Starts[e]] … Order[Starts[e+1]-1].
type Route struct {
	IDs       Ptr   `atlas:"out i32 [Rows,TopK]"`
	Weights   Ptr   `atlas:"out f32 [Rows,TopK]"`
	Order     Ptr   `atlas:"out i32 [Rows*TopK]"`
	Starts    Ptr   `atlas:"out i32 [Experts+1]"`
	Logits    Ptr   `atlas:"in act [Rows,Experts]"`
	Bias      Ptr   `atlas:"in? f32 [Experts]"`
	Rows      int32 `atlas:"step"`
	Experts   int32
	TopK      int32
	Normalise int32
	Routing   Routing
	Scale     float32
}

// ExpertUp runs the gate and up projections of each pick and gates them: for p = r·TopK+k with expert e,
// Out[p] = silu(g)·u where W[e] holds the rows of the gate and then those of the up projection, g,u = W[e]·In[r].
type ExpertUp struct {
	Out    Ptr    `atlas:"out act [Rows*TopK,W.Rows/2]"`
	In     Ptr    `atlas:"in act [Rows,W.Cols]"`
	IDs    Ptr    `atlas:"in i32 [Rows,TopK]"`
	Order  Ptr    `atlas:"in i32 [Rows*TopK]"`
	Starts Ptr    `atlas:"in i32 [W.Count+1]"`
	W      Weight `atlas:"in"`
	Rows   int32  `atlas:"step"`
	TopK   int32
}

// ExpertDown runs the down projection of each pick and sums a row's picks in the order of their rank:
// Out[r] = Σ_k Weights[r,k]·W[IDs[r,k]]·In[r·TopK+k].
type ExpertDown struct {
	Out     Ptr    `atlas:"out act [Rows,W.Rows]"`
	In      Ptr    `atlas:"in act [Rows*TopK,W.Cols]"`
	IDs     Ptr    `atlas:"in i32 [Rows,TopK]"`
	Weights Ptr    `atlas:"in f32 [Rows,TopK]"`
	Order   Ptr    `atlas:"in i32 [Rows*TopK]"`
	Starts  Ptr    `atlas:"in i32 [W.Count+1]"`
	W       Weight `atlas:"in"`
	Rows    int32  `atlas:"step"`
	TopK    int32
}
