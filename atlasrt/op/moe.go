package op

// MoE is a mixture of experts: each row is multiplied by a few of many networks. Source: Shazeer et al. 2017,
// https://arxiv.org/abs/1701.06538.
type MoE interface {
	Route(Stream, Route)
	ExpertUp(Stream, ExpertUp)
	ExpertDown(Stream, ExpertDown)
	GatedAdd(Stream, GatedAdd)
}

// Routing is how a router's logits become the scores of experts.
type Routing int32

// Routings.
const (
	RouteSoftmax Routing = iota // scores are a softmax over all experts
	RouteSigmoid                // scores are the sigmoid of each logit; Bias counts in the choice of experts, but not in their weights
)

// Route picks TopK of Experts experts for each row, by the scores that Routing makes of its Logits, the best first (the lower id where two
// tie), and groups the picks by expert.
//
// Weights[r,k] = Scale·score, divided by the sum of the row's chosen scores where Normalise is not 0. Pick p = r·TopK+k
// belongs to expert IDs[p]. Order lists all picks sorted by expert and then by p; those of expert e are
// Order[Starts[e]] … Order[Starts[e+1]-1].
//
// Where Shared is 1, the last expert is one that every row gets as its last pick. It takes no part in the choice, in the scores of the others or
// in their sum: its weight is the sigmoid of its logit.
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
	Shared    int32
	Normalise int32
	Routing   Routing
	Scale     float32
	_         int32
}

// ExpertUp computes the gate and up projections of each pick, and gates them. Pick p = r·TopK+k has expert e = IDs[p], and
// Out[p] = silu(g)·u with g,u = W[e]·In[r]: the first half of W[e]'s rows is the gate projection, the second half the up projection.
// Order and Starts are those of Route.
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

// ExpertDown computes the down projection of each pick, and adds up the picks of each row from the best to the last:
// Out[r] = Σ_k Weights[r,k]·W[IDs[r,k]]·In[r·TopK+k]. Weights, Order and Starts are those of Route.
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

// GatedAdd adds what a shared expert gives to a row, by one gate for the whole row: Out[r,c] += In[r,c]/(1+e^-Gate[r]).
type GatedAdd struct {
	Out  Ptr   `atlas:"inout act [Rows,Cols]"`
	In   Ptr   `atlas:"in act [Rows,Cols]"`
	Gate Ptr   `atlas:"in act [Rows]"`
	Rows int32 `atlas:"step"`
	Cols int32
}
