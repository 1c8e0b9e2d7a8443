package oracle

import (
	"runtime"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// AttentionLayer is the attention half of a layer.
func (s *Set) AttentionLayer(q op.Stream, x op.AttentionLayer) bool {
	heads, wide := x.Heads*x.HeadDim, (x.Heads+2*x.KVHeads)*x.HeadDim
	projected, attended := s.between(x.Rows, wide), s.between(x.Rows, heads)
	defer runtime.KeepAlive(projected)
	defer runtime.KeepAlive(attended)
	qkv, mixed := address(projected), address(attended)
	s.NormLinear(q, op.NormLinear{
		Out: qkv, Sum: x.Sum, In: x.In, Residual: x.Residual, Scale: x.Scale, Bias: x.Bias, W: x.W, Rows: x.Rows, OutPitch: wide, Eps: x.Eps,
	})
	s.RotaryCache(q, op.RotaryCache{
		QKV: qkv, K: x.K, V: x.V, Angles: x.Angles, Slots: x.Slots, QNorm: x.QNorm, KNorm: x.KNorm,
		Rows: x.Rows, Heads: x.Heads, KVHeads: x.KVHeads, HeadDim: x.HeadDim, Pairs: x.Pairs,
		Blocks: x.Blocks, BlockSize: x.BlockSize, Pairing: x.Pairing, KVType: x.KVType, Eps: x.Eps,
	})
	s.PagedAttention(q, op.PagedAttention{
		Out: mixed, Q: qkv, K: x.K, V: x.V, Starts: x.Starts, Lengths: x.Lengths, Tables: x.Tables,
		Rows: x.Rows, QPitch: wide, Seqs: x.Seqs, MaxBlocks: x.MaxBlocks, Heads: x.Heads, KVHeads: x.KVHeads, HeadDim: x.HeadDim,
		Blocks: x.Blocks, BlockSize: x.BlockSize, Window: x.Window, KVType: x.KVType, Scale: x.Factor,
	})
	s.Linear(q, op.Linear{Out: x.Out, In: mixed, W: x.Project, Rows: x.Rows, OutPitch: x.Project.Rows})
	return true
}

// FeedLayer is the gated network of a layer.
func (s *Set) FeedLayer(q op.Stream, x op.FeedLayer) bool {
	memory := s.between(x.Rows, x.Down.Cols)
	defer runtime.KeepAlive(memory)
	gated := address(memory)
	s.GatedLinear(q, op.GatedLinear{Out: gated, Sum: x.Sum, In: x.In, Residual: x.Residual, Scale: x.Scale, W: x.W, Rows: x.Rows, Eps: x.Eps})
	s.Linear(q, op.Linear{Out: x.Out, In: gated, W: x.Down, Rows: x.Rows, OutPitch: x.Down.Rows})
	return true
}

// MixtureLayer is the mixture of experts of a layer.
func (s *Set) MixtureLayer(q op.Stream, x op.MixtureLayer) bool {
	picks := x.Rows * x.TopK
	norms, memory, lists := s.between(x.Rows, x.W.Cols), s.between(picks, x.Down.Cols), make([]byte, 4*(3*picks+x.W.Count+1))
	defer runtime.KeepAlive(norms)
	defer runtime.KeepAlive(memory)
	defer runtime.KeepAlive(lists)
	normed, gated, ids := address(norms), address(memory), address(lists)
	weights, order := ids+op.Ptr(4*picks), ids+op.Ptr(8*picks)
	starts := ids + op.Ptr(12*picks)
	s.NormRoute(q, op.NormRoute{
		Normed: normed, Sum: x.Sum, IDs: ids, Weights: weights, Order: order, Starts: starts,
		In: x.In, Residual: x.Residual, Scale: x.Scale, Bias: x.Bias, W: x.Router,
		Rows: x.Rows, TopK: x.TopK, Normalise: x.Normalise, Routing: x.Routing, Factor: x.Factor, Eps: x.Eps,
	})
	s.ExpertUp(q, op.ExpertUp{Out: gated, In: normed, Order: order, Starts: starts, W: x.W, Rows: x.Rows, TopK: x.TopK})
	s.ExpertDown(q, op.ExpertDown{Out: x.Out, In: gated, IDs: ids, Weights: weights, Order: order, Starts: starts, W: x.Down, Rows: x.Rows, TopK: x.TopK})
	return true
}
