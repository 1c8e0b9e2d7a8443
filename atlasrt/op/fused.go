package op

// Fused is operations that stand for several, for which a set may have one kernel. A method reports whether it has one for the call: if
// not, nothing was queued, and the caller calls the plain operations.
//
// A fused kernel computes what the plain operations would, one after the other. Values that one of them would write for the next are
// rounded to act here, too.
type Fused interface {
	NormLinear(Stream, NormLinear) bool
	GatedLinear(Stream, GatedLinear) bool
	NormRoute(Stream, NormRoute) bool
	NormRouteUp(Stream, NormRouteUp) bool
	LinearAdd(Stream, LinearAdd) bool
	ExpertDownAdd(Stream, ExpertDownAdd) bool
	ExpertDownNorm(Stream, ExpertDownNorm) bool
	DeltaNet(Stream, DeltaNet) bool
}

// NormLinear is RMSNorm and Linear: Out[r,n] = Σ_k y[r,k]·W[n,k] + Bias[n] with y = RMSNorm(In, Scale).
//
// Where Residual is not zero, In+Residual takes In's place and is stored to Sum. Sum must not overlap In or Residual: every block of a
// kernel reads them.
type NormLinear struct {
	Out      Ptr    `atlas:"out act [Rows:OutPitch,W.Rows]"`
	Sum      Ptr    `atlas:"out? act [Rows,W.Cols]"`
	In       Ptr    `atlas:"in act [Rows,W.Cols]"`
	Residual Ptr    `atlas:"in? act [Rows,W.Cols]"`
	Scale    Ptr    `atlas:"in f32 [W.Cols]"`
	Bias     Ptr    `atlas:"in? f32 [W.Rows]"`
	W        Weight `atlas:"in"`
	Rows     int32  `atlas:"step"`
	OutPitch int32
	Eps      float32
	_        int32
}

// GatedLinear is NormLinear without bias, and then SwiGLU: Out[r,n] = silu(g)·u, where g and u are elements n and n+W.Rows/2 of
// the product. Where Scale is zero there is no norm: y = In, and Residual and Sum are not used.
type GatedLinear struct {
	Out      Ptr    `atlas:"out act [Rows,W.Rows/2]"`
	Sum      Ptr    `atlas:"out? act [Rows,W.Cols]"`
	In       Ptr    `atlas:"in act [Rows,W.Cols]"`
	Residual Ptr    `atlas:"in? act [Rows,W.Cols]"`
	Scale    Ptr    `atlas:"in? f32 [W.Cols]"`
	W        Weight `atlas:"in"`
	Rows     int32  `atlas:"step"`
	Eps      float32
}

// NormRoute is RMSNorm, Linear and Route: Normed = y as in NormLinear, and the logits of row r are W·y[r]. IDs, Weights, Order, Starts,
// Bias, Shared, Normalise and Routing are those of Route; its experts are the rows of W, and its Scale is Factor here.
type NormRoute struct {
	Normed    Ptr    `atlas:"out act [Rows,W.Cols]"`
	Sum       Ptr    `atlas:"out? act [Rows,W.Cols]"`
	IDs       Ptr    `atlas:"out i32 [Rows,TopK]"`
	Weights   Ptr    `atlas:"out f32 [Rows,TopK]"`
	Order     Ptr    `atlas:"out i32 [Rows*TopK]"`
	Starts    Ptr    `atlas:"out i32 [W.Rows+1]"`
	In        Ptr    `atlas:"in act [Rows,W.Cols]"`
	Residual  Ptr    `atlas:"in? act [Rows,W.Cols]"`
	Scale     Ptr    `atlas:"in f32 [W.Cols]"`
	Bias      Ptr    `atlas:"in? f32 [W.Rows]"`
	W         Weight `atlas:"in"`
	Rows      int32  `atlas:"step"`
	TopK      int32
	Shared    int32
	Normalise int32
	Routing   Routing
	Factor    float32
	Eps       float32
	_         int32
}

// NormRouteUp is NormRoute, whose matrix is Router here, and then ExpertUp of the normalised rows, which are not stored. IDs, Weights,
// Order, Starts, Shared, Normalise, Routing and Factor are those of NormRoute.
type NormRouteUp struct {
	Out       Ptr    `atlas:"out act [Rows*TopK,W.Rows/2]"`
	Sum       Ptr    `atlas:"out? act [Rows,W.Cols]"`
	IDs       Ptr    `atlas:"out i32 [Rows,TopK]"`
	Weights   Ptr    `atlas:"out f32 [Rows,TopK]"`
	Order     Ptr    `atlas:"out i32 [Rows*TopK]"`
	Starts    Ptr    `atlas:"out i32 [W.Count+1]"`
	In        Ptr    `atlas:"in act [Rows,W.Cols]"`
	Residual  Ptr    `atlas:"in? act [Rows,W.Cols]"`
	Scale     Ptr    `atlas:"in f32 [W.Cols]"`
	Bias      Ptr    `atlas:"in? f32 [W.Count]"`
	W         Weight `atlas:"in"`
	Router    Weight `atlas:"in"`
	Rows      int32  `atlas:"step"`
	TopK      int32
	Shared    int32
	Normalise int32
	Routing   Routing
	Factor    float32
	Eps       float32
	_         int32
}

// LinearAdd is Linear whose product, rounded to act, is added to what Out holds. So a block adds its result to the residual.
type LinearAdd struct {
	Out      Ptr    `atlas:"inout act [Rows:OutPitch,W.Rows]"`
	In       Ptr    `atlas:"in act [Rows,W.Cols]"`
	Bias     Ptr    `atlas:"in? f32 [W.Rows]"`
	W        Weight `atlas:"in"`
	Rows     int32  `atlas:"step"`
	OutPitch int32
}

// ExpertDownAdd is ExpertDown whose sum, rounded to act, is added to what Out holds. IDs, Weights, Order and Starts are those of Route.
type ExpertDownAdd struct {
	Out     Ptr    `atlas:"inout act [Rows,W.Rows]"`
	In      Ptr    `atlas:"in act [Rows*TopK,W.Cols]"`
	IDs     Ptr    `atlas:"in i32 [Rows,TopK]"`
	Weights Ptr    `atlas:"in f32 [Rows,TopK]"`
	Order   Ptr    `atlas:"in i32 [Rows*TopK]"`
	Starts  Ptr    `atlas:"in i32 [W.Count+1]"`
	W       Weight `atlas:"in"`
	Rows    int32  `atlas:"step"`
	TopK    int32
}

// ExpertDownNorm is ExpertDownAdd, and then RMSNorm of Out: Normed is the input of the next block. IDs, Weights, Order and Starts are
// those of Route.
type ExpertDownNorm struct {
	Out     Ptr    `atlas:"inout act [Rows,W.Rows]"`
	Normed  Ptr    `atlas:"out act [Rows,W.Rows]"`
	In      Ptr    `atlas:"in act [Rows*TopK,W.Cols]"`
	IDs     Ptr    `atlas:"in i32 [Rows,TopK]"`
	Weights Ptr    `atlas:"in f32 [Rows,TopK]"`
	Order   Ptr    `atlas:"in i32 [Rows*TopK]"`
	Starts  Ptr    `atlas:"in i32 [W.Count+1]"`
	Scale   Ptr    `atlas:"in f32 [W.Rows]"`
	W       Weight `atlas:"in"`
	Rows    int32  `atlas:"step"`
	TopK    int32
	Eps     float32
	_       int32
}
