package op

// Core is what every transformer needs.
type Core interface {
	Embedding(Stream, Embedding)
	RMSNorm(Stream, RMSNorm)
	Linear(Stream, Linear)
	SwiGLU(Stream, SwiGLU)
	Logits(Stream, Logits)
}

// Embedding copies rows of a matrix: Out[r] = W[IDs[r]], where IDs are tokens. An id outside the matrix gives zeros.
type Embedding struct {
	Out  Ptr    `atlas:"out act [Rows,W.Cols]"`
	IDs  Ptr    `atlas:"in i32 [Rows]"`
	W    Weight `atlas:"in"`
	Rows int32  `atlas:"step"`
	_    int32
}

// RMSNorm divides each row by its root mean square: Out[r,c] = In[r,c]·Scale[c] / √(mean_c In[r,c]² + Eps).
//
// Where Residual is not zero, In+Residual takes In's place in this formula, and is stored to Residual for the next block.
// Out may be In. Source: Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467.
type RMSNorm struct {
	Out      Ptr   `atlas:"out act [Rows,Cols]"`
	In       Ptr   `atlas:"in act [Rows,Cols]"`
	Residual Ptr   `atlas:"inout? act [Rows,Cols]"`
	Scale    Ptr   `atlas:"in f32 [Cols]"`
	Rows     int32 `atlas:"step"`
	Cols     int32
	Eps      float32
	_        int32
}

// Linear multiplies rows by a matrix: Out[r,n] = Σ_k In[r,k]·W[n,k] + Bias[n].
//
// Consecutive rows of Out lie OutPitch elements apart, so that several matrices can fill one buffer side by side.
type Linear struct {
	Out      Ptr    `atlas:"out act [Rows:OutPitch,W.Rows]"`
	In       Ptr    `atlas:"in act [Rows,W.Cols]"`
	Bias     Ptr    `atlas:"in? f32 [W.Rows]"`
	W        Weight `atlas:"in"`
	Rows     int32  `atlas:"step"`
	OutPitch int32
}

// SwiGLU gates the up projection of each row: Out[r,c] = silu(In[r,c])·In[r,Cols+c] with silu(x) = x/(1+e⁻ˣ).
//
// A row of In holds the gate projection and then the up projection. Source: Shazeer 2020, https://arxiv.org/abs/2002.05202.
type SwiGLU struct {
	Out  Ptr   `atlas:"out act [Rows,Cols]"`
	In   Ptr   `atlas:"in act [Rows,2*Cols]"`
	Rows int32 `atlas:"step"`
	Cols int32
}

// Logits multiplies chosen rows by the output matrix: Out[i,n] = Σ_k In[Index[i],k]·W[n,k]. The result is always f32.
//
// In has InRows rows, of which Index chooses Rows. A negative index gives a row of zeros.
type Logits struct {
	Out    Ptr    `atlas:"out f32 [Rows,W.Rows]"`
	In     Ptr    `atlas:"in act [InRows,W.Cols]"`
	Index  Ptr    `atlas:"in i32 [Rows]"`
	W      Weight `atlas:"in"`
	Rows   int32  `atlas:"step"`
	InRows int32  `atlas:"step"`
}
