package oracle

import (
	"runtime"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// between is memory for the values that one plain operation writes for the next.
func (s *Set) between(pin *runtime.Pinner, rows, cols int32) op.Ptr {
	return Address(pin, make([]byte, int64(rows)*int64(cols)*s.act.Bytes()))
}

// normed is RMSNorm of in, or of in+residual, which is stored to sum.
func (s *Set) normed(q op.Stream, out, sum, in, residual, scale op.Ptr, rows, cols int32, eps float32) {
	if residual != 0 {
		s.store(sum, s.act, 0, load(residual, s.act, 0, int(rows)*int(cols)))
		residual = sum
	}
	s.RMSNorm(q, op.RMSNorm{Out: out, In: in, Residual: residual, Scale: scale, Rows: rows, Cols: cols, Eps: eps})
}

// NormLinear normalises rows and multiplies them by a matrix.
func (s *Set) NormLinear(q op.Stream, x op.NormLinear) bool {
	var pin runtime.Pinner
	defer pin.Unpin()
	y := s.between(&pin, x.Rows, x.W.Cols)
	s.normed(q, y, x.Sum, x.In, x.Residual, x.Scale, x.Rows, x.W.Cols, x.Eps)
	s.Linear(q, op.Linear{Out: x.Out, In: y, Bias: x.Bias, W: x.W, Rows: x.Rows, OutPitch: x.OutPitch})
	return true
}

// GatedLinear normalises rows where there is a scale, multiplies them by a matrix and gates the halves.
func (s *Set) GatedLinear(q op.Stream, x op.GatedLinear) bool {
	var pin runtime.Pinner
	defer pin.Unpin()
	y, product := x.In, s.between(&pin, x.Rows, x.W.Rows)
	if x.Scale != 0 {
		y = s.between(&pin, x.Rows, x.W.Cols)
		s.normed(q, y, x.Sum, x.In, x.Residual, x.Scale, x.Rows, x.W.Cols, x.Eps)
	}
	s.Linear(q, op.Linear{Out: product, In: y, W: x.W, Rows: x.Rows, OutPitch: x.W.Rows})
	s.SwiGLU(q, op.SwiGLU{Out: x.Out, In: product, Rows: x.Rows, Cols: x.W.Rows / 2})
	return true
}

// NormRoute normalises rows and picks their experts.
func (s *Set) NormRoute(q op.Stream, x op.NormRoute) bool {
	var pin runtime.Pinner
	defer pin.Unpin()
	logits := s.between(&pin, x.Rows, x.W.Rows)
	s.normed(q, x.Normed, x.Sum, x.In, x.Residual, x.Scale, x.Rows, x.W.Cols, x.Eps)
	s.Linear(q, op.Linear{Out: logits, In: x.Normed, W: x.W, Rows: x.Rows, OutPitch: x.W.Rows})
	s.Route(q, op.Route{
		IDs: x.IDs, Weights: x.Weights, Order: x.Order, Starts: x.Starts, Logits: logits, Bias: x.Bias,
		Rows: x.Rows, Experts: x.W.Rows, TopK: x.TopK, Shared: x.Shared, Normalise: x.Normalise, Routing: x.Routing, Scale: x.Factor,
	})
	return true
}

// NormRouteUp normalises rows, picks their experts, and computes the experts' gate and up projections.
func (s *Set) NormRouteUp(q op.Stream, x op.NormRouteUp) bool {
	var pin runtime.Pinner
	defer pin.Unpin()
	y := s.between(&pin, x.Rows, x.W.Cols)
	s.NormRoute(q, op.NormRoute{
		Normed: y, Sum: x.Sum, IDs: x.IDs, Weights: x.Weights, Order: x.Order, Starts: x.Starts,
		In: x.In, Residual: x.Residual, Scale: x.Scale, Bias: x.Bias, W: x.Router,
		Rows: x.Rows, TopK: x.TopK, Shared: x.Shared, Normalise: x.Normalise, Routing: x.Routing, Factor: x.Factor, Eps: x.Eps,
	})
	s.ExpertUp(q, op.ExpertUp{Out: x.Out, In: y, IDs: x.IDs, Order: x.Order, Starts: x.Starts, W: x.W, Rows: x.Rows, TopK: x.TopK})
	return true
}

// add runs a plain operation into memory of its own, and adds the result to out, whose rows lie pitch elements apart.
func (s *Set) add(out op.Ptr, rows, cols, pitch int32, plain func(s *Set, between op.Ptr)) {
	var pin runtime.Pinner
	defer pin.Unpin()
	between := s.between(&pin, rows, cols)
	unrounded := NewUnrounded(between, s.act, int64(rows)*int64(cols))
	plain(s.Watching(unrounded), between)
	for r := range int(rows) {
		sum, at := load(between, s.act, r*int(cols), int(cols)), r*int(pitch)
		for c, before := range load(out, s.act, at, int(cols)) {
			sum[c] += before
		}
		s.store(out, s.act, at, sum)
		added := unrounded.Values[r*int(cols) : (r+1)*int(cols)]
		for _, e := range s.watched {
			if from, ok := e.holds(out, s.act, at, len(added)); ok {
				copy(e.Added[from:], added)
			}
		}
	}
}

// LinearAdd multiplies rows by a matrix and adds them to others.
func (s *Set) LinearAdd(q op.Stream, x op.LinearAdd) bool {
	s.add(x.Out, x.Rows, x.W.Rows, x.OutPitch, func(s *Set, between op.Ptr) {
		s.Linear(q, op.Linear{Out: between, In: x.In, Bias: x.Bias, W: x.W, Rows: x.Rows, OutPitch: x.W.Rows})
	})
	return true
}

// ExpertDownAdd runs the down projections, and adds each row's sum to that row of Out.
func (s *Set) ExpertDownAdd(q op.Stream, x op.ExpertDownAdd) bool {
	s.add(x.Out, x.Rows, x.W.Rows, x.W.Rows, func(s *Set, between op.Ptr) {
		s.ExpertDown(q, op.ExpertDown{
			Out: between, In: x.In, IDs: x.IDs, Weights: x.Weights, Order: x.Order, Starts: x.Starts, W: x.W, Rows: x.Rows, TopK: x.TopK,
		})
	})
	return true
}

// ExpertDownNorm runs the down projections, adds each row's sum to that row of Out, and normalises the result.
func (s *Set) ExpertDownNorm(q op.Stream, x op.ExpertDownNorm) bool {
	s.ExpertDownAdd(q, op.ExpertDownAdd{
		Out: x.Out, In: x.In, IDs: x.IDs, Weights: x.Weights, Order: x.Order, Starts: x.Starts, W: x.W, Rows: x.Rows, TopK: x.TopK,
	})
	s.RMSNorm(q, op.RMSNorm{Out: x.Normed, In: x.Out, Scale: x.Scale, Rows: x.Rows, Cols: x.W.Rows, Eps: x.Eps})
	return true
}

// DeltaNet convolves, runs the gated delta rule, and normalises and gates what it gives.
func (s *Set) DeltaNet(q op.Stream, x op.DeltaNet) bool {
	var pin runtime.Pinner
	defer pin.Unpin()
	channels, values := 2*x.KeyHeads*x.KeyDim+x.ValueHeads*x.ValueDim, x.ValueHeads*x.ValueDim
	pitch := channels + values + 2*x.ValueHeads
	column := func(n int32) op.Ptr { return x.In + op.Ptr(int64(n)*s.act.Bytes()) }
	convolved, out := s.between(&pin, x.Rows, channels), s.between(&pin, x.Rows, values)
	s.CausalConv(q, op.CausalConv{
		Out: convolved, In: x.In, Filter: x.Filter, State: x.Window, Starts: x.Starts, Lengths: x.Lengths, Slot: x.Slot,
		Rows: x.Rows, Seqs: x.Seqs, Slots: x.Slots, MaxDrafts: x.MaxDrafts, Channels: channels, Width: x.Width, InPitch: pitch,
	})
	s.DeltaRule(q, op.DeltaRule{
		Out: out, QKV: convolved, Gates: column(channels + values), Decay: x.Decay, Bias: x.Bias, State: x.State, Journal: x.Journal,
		Starts: x.Starts, Lengths: x.Lengths, Slot: x.Slot, Drafts: x.Drafts, Accepted: x.Accepted, Rows: x.Rows, Seqs: x.Seqs, Slots: x.Slots, MaxDrafts: x.MaxDrafts,
		KeyHeads: x.KeyHeads, ValueHeads: x.ValueHeads, KeyDim: x.KeyDim, ValueDim: x.ValueDim, GatesPitch: pitch, Tiled: x.Tiled, Eps: x.Eps,
	})
	for _, r := range runs(x.Seqs, x.Starts, x.Lengths, x.Slot, 0, 0) { // the other rows of Out stay as they are
		from := func(p op.Ptr, pitch int32) op.Ptr { return p + op.Ptr(int64(r.first)*int64(pitch)*s.act.Bytes()) }
		s.GatedNorm(q, op.GatedNorm{
			Out: from(x.Out, values), In: from(out, values), Z: from(column(channels), pitch), Scale: x.Scale, Rows: int32(r.rows), Heads: x.ValueHeads, HeadDim: x.ValueDim,
			ZPitch: pitch, Gate: x.Gate, Eps: x.NormEps,
		})
	}
	return true
}
