package oracle

import (
	"cmp"
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Route picks experts and groups the picks.
func (s *Set) Route(_ op.Stream, x op.Route) {
	rows, experts, top, shared := int(x.Rows), int(x.Experts), int(x.TopK), int(x.Shared)
	bias := make([]float64, experts)
	if x.Bias != 0 {
		bias = load(x.Bias, op.F32, 0, experts)
	}
	ids := slice[int32](x.IDs, rows*top)
	for r := range rows {
		logits := load(x.Logits, s.act, r*experts, experts)
		scores, common := logits[:experts-shared], logits[experts-shared:]
		if x.Routing == op.RouteSigmoid {
			for e, z := range scores {
				scores[e] = 1 / (1 + math.Exp(-z))
			}
		} else {
			softmax(scores)
		}
		chosen := best(scores, bias, top-shared)
		weights, sum := make([]float64, top-shared, top), 0.0
		for k, e := range chosen {
			ids[r*top+k] = int32(e)
			weights[k] = scores[e]
			sum += scores[e]
		}
		if x.Normalise == 0 {
			sum = 1
		}
		for k := range weights {
			weights[k] *= float64(x.Scale) / sum
		}
		for _, z := range common {
			ids[r*top+top-1] = int32(experts - 1)
			weights = append(weights, 1/(1+math.Exp(-z)))
		}
		s.store(x.Weights, op.F32, r*top, weights)
	}
	Group(slice[int32](x.Order, rows*top), slice[int32](x.Starts, experts+1), ids)
}

// best lists the top experts by score plus bias, the lower id first where two tie.
func best(scores, bias []float64, top int) []int {
	order := make([]int, len(scores))
	for e := range order {
		order[e] = e
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b]+bias[b], scores[a]+bias[a]) })
	return order[:top]
}

// Group lists picks by expert. ids is the expert of each pick; the picks of expert e become order[starts[e]] … order[starts[e+1]-1],
// ascending. starts has one element more than there are experts.
func Group(order, starts, ids []int32) {
	next := 0
	for e := range len(starts) - 1 {
		starts[e] = int32(next)
		for p, id := range ids {
			if int(id) == e {
				order[next] = int32(p)
				next++
			}
		}
	}
	starts[len(starts)-1] = int32(next)
}

// ExpertUp runs the gate and up projections of each pick.
func (s *Set) ExpertUp(q op.Stream, x op.ExpertUp) {
	if !known(q, "ExpertUp", x.W) {
		return
	}
	cols, half := int(x.W.Cols), int(x.W.Rows)/2
	in := s.factors(x.In, 0, int(x.Rows), cols)
	starts := slice[int32](x.Starts, int(x.W.Count)+1)
	order := slice[int32](x.Order, int(x.Rows*x.TopK))
	parallel(half, func(from, to int) {
		gate, up := make([]float64, cols), make([]float64, cols)
		for e := range int(x.W.Count) {
			picks := order[starts[e]:starts[e+1]]
			if len(picks) == 0 {
				continue
			}
			for n := from; n < to; n++ {
				weightRow(gate, x.W, e, n)
				weightRow(up, x.W, e, half+n)
				for _, p := range picks {
					r := int(p / x.TopK)
					row := in[r*cols : (r+1)*cols]
					s.store(x.Out, s.act, int(p)*half+n, []float64{silu(dot(row, gate)) * dot(row, up)})
				}
			}
		}
	})
}

// ExpertDown runs the down projections and sums each row's picks.
func (s *Set) ExpertDown(q op.Stream, x op.ExpertDown) {
	if !known(q, "ExpertDown", x.W) {
		return
	}
	rows, top, cols := int(x.Rows), int(x.TopK), int(x.W.Cols)
	in := s.factors(x.In, 0, rows*top, cols)
	weights := load(x.Weights, op.F32, 0, rows*top)
	starts := slice[int32](x.Starts, int(x.W.Count)+1)
	order := slice[int32](x.Order, rows*top)
	parallel(int(x.W.Rows), func(from, to int) {
		column, products := make([]float64, cols), make([]float64, rows*top)
		for n := from; n < to; n++ {
			for e := range int(x.W.Count) {
				picks := order[starts[e]:starts[e+1]]
				if len(picks) == 0 {
					continue
				}
				weightRow(column, x.W, e, n)
				for _, p := range picks {
					products[p] = dot(in[int(p)*cols:(int(p)+1)*cols], column)
				}
			}
			for r := range rows {
				sum := dot(weights[r*top:(r+1)*top], products[r*top:(r+1)*top])
				s.store(x.Out, s.act, r*int(x.W.Rows)+n, []float64{sum})
			}
		}
	})
}
