package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Residual is the residual stream h of one step: the embedding plus the results of all blocks so far. A block's body reads h through the norm
// before the block and adds its result to h, by the methods here and in no other way. They take a fused kernel where the set has one.
//
// h is stream, or stream + x after a block whose last kernel could not add to stream. The next norm adds x then: in place, or, where it is
// part of a fused kernel, into sum, which takes the place of stream.
type Residual struct {
	ops  Ops
	q    op.Stream
	act  op.DType
	rows int32

	stream op.Ptr // act [Rows,Hidden]
	sum    op.Ptr // act [Rows,Hidden]
	x      op.Ptr // act [Rows,Hidden]
	normed op.Ptr // act [Rows,Hidden]: a body's input

	before Norm  // of the block at work
	after  *Norm // of the block at work; nil: none
	next   Norm  // before the block behind it

	apart bool // x has still to be added to stream
	ready bool // normed holds before(h)
	ahead bool // normed holds next(h)
}

// run queues blocks, and behind the last one norm. It returns where norm(h) lies then.
func (h *Residual) run(blocks []Block, norm Norm, in *model.Inputs) op.Ptr {
	for i, block := range blocks {
		h.enter(block, before(blocks, i+1, norm))
		block.Body.Forward(h.q, in, h)
	}
	h.enter(Block{Before: norm}, Norm{})
	return h.Normed()
}

// before is the norm before block i, or the last one where there is no such block.
func before(blocks []Block, i int, last Norm) Norm {
	if i < len(blocks) {
		return blocks[i].Before
	}
	return last
}

// enter begins the work of a block; next is the norm before the block behind it.
func (h *Residual) enter(b Block, next Norm) {
	h.before, h.after, h.next = b.Before, b.After, next
	h.ready, h.ahead = h.ahead, false
}

// operands are the addresses for a norm: in and residual, whose sum is h (residual is 0 where in alone is), and sum, where a fused
// kernel writes h.
func (h *Residual) operands() (in, residual, sum op.Ptr) {
	if !h.apart {
		return h.stream, 0, 0
	}
	return h.x, h.stream, h.sum
}

// summed says that a fused kernel with these operands is queued: the sum that it writes is the stream from now on.
func (h *Residual) summed() {
	if h.apart {
		h.stream, h.sum, h.apart = h.sum, h.stream, false
	}
}

// Normed is where norm(h) lies, act [Rows,Hidden]. It queues the norm where no kernel has left it there yet.
func (h *Residual) Normed() op.Ptr {
	if !h.ready {
		in, residual, _ := h.operands()
		h.ops.RMSNorm(h.q, op.RMSNorm{
			Out: h.normed, In: in, Residual: residual, Scale: h.before.scale, Rows: h.rows, Cols: h.before.cols, Eps: h.before.eps,
		})
		h.apart, h.ready = false, true
	}
	return h.normed
}

// Project multiplies norm(h) by l. Where the kernel set has a launch for norm and product together, every piece of l normalises again: that
// takes less time than a launch of its own. From the first piece without one, the norm is a launch.
func (h *Residual) Project(l Linear, out op.Ptr) {
	for ; len(l.pieces) > 0 && !h.ready; l.pieces = l.pieces[1:] {
		p := l.pieces[0]
		in, residual, sum := h.operands()
		if !h.ops.NormLinear(h.q, op.NormLinear{
			Out: p.at(out, h.act), Sum: sum, In: in, Residual: residual, Scale: h.before.scale, Bias: p.bias, W: p.weight,
			Rows: h.rows, OutPitch: l.rows, Eps: h.before.eps,
		}) {
			break
		}
		h.summed()
	}
	if len(l.pieces) > 0 {
		l.Forward(h.ops, h.q, out, h.Normed(), h.rows, h.act)
	}
}

// Gate leaves silu(gate(x))·up(x) in out, where x = norm(h) and l is gate and up. It tries kernels in this order: norm, product and gate in
// one launch; a norm, then product and gate in one; and each by itself, with the product in between.
func (h *Residual) Gate(l Linear, between, out op.Ptr) {
	matrix, whole := l.whole()
	if whole && !h.ready {
		in, residual, sum := h.operands()
		if h.ops.GatedLinear(h.q, op.GatedLinear{
			Out: out, Sum: sum, In: in, Residual: residual, Scale: h.before.scale, W: matrix, Rows: h.rows, Eps: h.before.eps,
		}) {
			h.summed()
			return
		}
	}
	x := h.Normed()
	if whole && h.ops.GatedLinear(h.q, op.GatedLinear{Out: out, In: x, W: matrix, Rows: h.rows}) {
		return
	}
	l.Forward(h.ops, h.q, between, x, h.rows, h.act)
	h.ops.SwiGLU(h.q, op.SwiGLU{Out: out, In: between, Rows: h.rows, Cols: l.rows / 2})
}

// Route routes norm(h) to experts where one launch does the norm, the router and the choice. The call says all but what is known here:
// operands, norm and rows.
func (h *Residual) Route(x op.NormRoute) bool {
	if h.ready {
		return false
	}
	x.Normed, x.Rows, x.Scale, x.Eps = h.normed, h.rows, h.before.scale, h.before.eps
	x.In, x.Residual, x.Sum = h.operands()
	if !h.ops.NormRoute(h.q, x) {
		return false
	}
	h.summed()
	h.ready = true
	return true
}

// RouteUp is Route where the same launch computes the gate and up projections of the experts, too.
func (h *Residual) RouteUp(x op.NormRouteUp) bool {
	if h.ready {
		return false
	}
	x.Rows, x.Scale, x.Eps = h.rows, h.before.scale, h.before.eps
	x.In, x.Residual, x.Sum = h.operands()
	if !h.ops.NormRouteUp(h.q, x) {
		return false
	}
	h.summed()
	return true
}

// Add ends a body: it adds the product of rows of in by l to h.
func (h *Residual) Add(l Linear, in op.Ptr) {
	if p := l.pieces[0]; h.after == nil && len(l.pieces) == 1 &&
		h.ops.LinearAdd(h.q, op.LinearAdd{Out: h.stream, In: in, Bias: p.bias, W: p.weight, Rows: h.rows, OutPitch: l.rows}) {
		return
	}
	l.Forward(h.ops, h.q, h.x, in, h.rows, h.act)
	h.addX()
}

// AddGated adds in, act [Rows,Hidden], to h, each row times the sigmoid of its gate. Another addition has to follow, and no norm.
func (h *Residual) AddGated(in, gate op.Ptr) {
	if h.after != nil {
		panic("BUG: a block with a norm after it adds once")
	}
	h.Normed() // from which on h is stream alone
	h.ops.GatedAdd(h.q, op.GatedAdd{Out: h.stream, In: in, Gate: gate, Rows: h.rows, Cols: h.before.cols})
}

// AddExperts ends a body: it adds the down projections of experts to h. The call says all but Out and Rows.
func (h *Residual) AddExperts(x op.ExpertDown) {
	if h.after == nil && h.ops.ExpertDownNorm(h.q, op.ExpertDownNorm{
		Out: h.stream, Normed: h.normed, In: x.In, IDs: x.IDs, Weights: x.Weights, Order: x.Order, Starts: x.Starts,
		Scale: h.next.scale, W: x.W, Rows: h.rows, TopK: x.TopK, Eps: h.next.eps,
	}) {
		h.ahead = true
		return
	}
	if h.after == nil && h.ops.ExpertDownAdd(h.q, op.ExpertDownAdd{
		Out: h.stream, In: x.In, IDs: x.IDs, Weights: x.Weights, Order: x.Order, Starts: x.Starts, W: x.W, Rows: h.rows, TopK: x.TopK,
	}) {
		return
	}
	x.Out, x.Rows = h.x, h.rows
	h.ops.ExpertDown(h.q, x)
	h.addX()
}

// addX adds x, a block's result, to h, through the norm after the block where there is one.
func (h *Residual) addX() {
	if n := h.after; n != nil {
		h.ops.RMSNorm(h.q, op.RMSNorm{Out: h.x, In: h.x, Scale: n.scale, Rows: h.rows, Cols: n.cols, Eps: n.eps})
	}
	h.apart = true
}
