package main

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// Where two experts nearly tie, roundings decide which is chosen, and no tolerance covers what becomes of a row, nor in a layer that keeps
// states of all later ones. So references take the experts that the kernels chose. Those choices are judged by themselves.

// choices are the experts that routers chose: ids [rows,TopK] of each call, in order.
type choices [][]int32

// chooser notes which experts a kernel set chooses.
type chooser struct {
	bundle.Set
	made *choices
}

func (c chooser) note(q op.Stream, at op.Ptr, rows, topK int32) {
	if stream, ok := q.(device.Stream); ok { // else the step is only measured
		ids := make([]int32, rows*topK)
		stream.Read(unsafe.Slice((*byte)(unsafe.Pointer(&ids[0])), 4*len(ids)), at)
		*c.made = append(*c.made, ids)
	}
}

func (c chooser) Route(q op.Stream, x op.Route) {
	c.Set.Route(q, x)
	c.note(q, x.IDs, x.Rows, x.TopK)
}

func (c chooser) NormRoute(q op.Stream, x op.NormRoute) bool {
	served := c.Set.NormRoute(q, x)
	if served {
		c.note(q, x.IDs, x.Rows, x.TopK)
	}
	return served
}

func (c chooser) NormRouteUp(q op.Stream, x op.NormRouteUp) bool {
	served := c.Set.NormRouteUp(q, x)
	if served {
		c.note(q, x.IDs, x.Rows, x.TopK)
	}
	return served
}

// follower is a plain reference that takes the experts which others chose.
type follower struct {
	bundle.Set
	t     *testing.T
	act   op.DType
	plain *oracle.Set
	taken choices
	*routed
}

// routed is what a follower's routers saw.
type routed struct {
	calls int
	rows  []routedRow
}

// routedRow is one row: the experts that were taken for it, and the scores by which the follower would have chosen.
type routedRow struct {
	taken  []int32
	scores []float64
}

// gap is how much better the best expert that was not taken is than the worst that was; negative where it is not.
func (r routedRow) gap() float64 {
	taken, other := math.Inf(1), math.Inf(-1)
	for e, score := range r.scores {
		if slices.Contains(r.taken, int32(e)) {
			taken = min(taken, score)
		} else {
			other = max(other, score)
		}
	}
	return other - taken
}

func (f follower) NormRoute(op.Stream, op.NormRoute) bool     { return false }
func (f follower) NormRouteUp(op.Stream, op.NormRouteUp) bool { return false }

func (f follower) Route(q op.Stream, x op.Route) {
	run(q, x, func(q op.Stream, x op.Route) {
		top, experts, picks := int(x.TopK), int(x.Experts), int(x.Rows*x.TopK)
		if f.calls == len(f.taken) || len(f.taken[f.calls]) != picks {
			f.t.Fatalf("router %d: there is no choice of %d experts", f.calls, picks)
		}
		taken := f.taken[f.calls]
		f.calls++
		for r := range int(x.Rows) {
			f.row(q, x, r, taken[r*top:(r+1)*top-int(x.Shared)])
		}
		oracle.Group(words(x.Order, picks), words(x.Starts, experts+1), words(x.IDs, picks))
	})
}

// row chooses experts for one row: those that were taken have the highest bias, which counts in the choice alone.
func (f follower) row(q op.Stream, x op.Route, r int, taken []int32) {
	var pin runtime.Pinner
	defer pin.Unpin()
	const above = 1e3 // what scores and their own biases come to
	bias := make([]float32, x.Experts)
	if x.Bias != 0 {
		copy(bias, unsafe.Slice((*float32)(pointer(x.Bias)), x.Experts))
	}
	x.Logits += op.Ptr(int64(r) * int64(x.Experts) * f.act.Bytes())
	f.rows = append(f.rows, routedRow{taken, f.scores(x, bias)})
	for _, e := range taken {
		if e < 0 || e >= x.Experts-x.Shared || bias[e] >= above/2 {
			f.t.Fatalf("router %d, row %d: the experts %v are not %d of %d", f.calls-1, r, taken, len(taken), x.Experts-x.Shared)
		}
		bias[e] += above
	}
	x.Bias = oracle.Address(&pin, bias)
	x.IDs += op.Ptr(4 * r * int(x.TopK))
	x.Weights += op.Ptr(4 * r * int(x.TopK))
	x.Rows = 1
	f.plain.Route(q, x)
}

// scores are those of one row with their biases, as op.Route has them.
func (f follower) scores(x op.Route, bias []float32) []float64 {
	scores := make([]float64, x.Experts-x.Shared)
	oracle.Decode(scores, f.act, unsafe.Slice((*byte)(pointer(x.Logits)), int64(len(scores))*f.act.Bytes()))
	sum := 0.0
	for _, z := range scores {
		sum += math.Exp(z)
	}
	for e, z := range scores {
		if x.Routing == op.RouteSigmoid {
			scores[e] = 1 / (1 + math.Exp(-z))
		} else {
			scores[e] = math.Exp(z) / sum
		}
		scores[e] += float64(bias[e])
	}
	return scores
}

func pointer(p op.Ptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func words(p op.Ptr, n int) []int32 { return unsafe.Slice((*int32)(pointer(p)), n) }
