package optest

import (
	"fmt"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

func routeCases(o Options) []*Case {
	var list []*Case
	for i, s := range []struct{ rows, experts, top int }{{1, 8, 2}, {5, 4, 1}, {33, 64, 6}, {17, 128, 8}, {300, 128, 8}, {2, 3, 3}, {64, 256, 8}} {
		if o.Short && i > 3 {
			break
		}
		for k := range 4 {
			x := op.Route{
				Rows: int32(s.rows), Experts: int32(s.experts), TopK: int32(s.top),
				Normalise: int32(k % 2), Routing: op.Routing(k / 2), Scale: []float32{1, 2.5}[i%2],
			}
			c := of(fmt.Sprintf("rows %d experts %d top %d normalise %d routing %d", s.rows, s.experts, s.top, x.Normalise, x.Routing), x)
			c.numbers["Logits"] = distinct(s.rows, s.experts)
			if x.Routing == op.RouteSigmoid && i != 1 {
				c.with("Bias")
			}
			list = append(list, c)
		}
	}
	return append(list, sharedRouteCases(o)...)
}

// sharedRouteCases have an expert that every row gets. Where there are as many picks as experts but for it, all are chosen.
func sharedRouteCases(o Options) []*Case {
	var list []*Case
	for i, s := range []struct{ rows, experts, top int }{{1, 257, 9}, {7, 9, 3}, {64, 257, 9}, {1, 513, 11}, {33, 513, 11}, {3, 5, 5}, {2, 2, 1}, {300, 129, 7}} {
		if o.Short && i > 3 {
			break
		}
		for k := range 4 {
			x := op.Route{
				Rows: int32(s.rows), Experts: int32(s.experts), TopK: int32(s.top), Shared: 1,
				Normalise: int32(k % 2), Routing: op.Routing(k / 2), Scale: []float32{1, 2.5}[i%2],
			}
			c := of(fmt.Sprintf("shared, rows %d experts %d top %d normalise %d routing %d", s.rows, s.experts, s.top, x.Normalise, x.Routing), x)
			c.numbers["Logits"] = distinct(s.rows, s.experts)
			if x.Routing == op.RouteSigmoid {
				c.with("Bias")
			}
			list = append(list, c)
		}
	}
	return list
}

// distinct makes rows of different numbers, so that no two experts tie. They are sixteenths, which every float type holds exactly.
func distinct(rows, cols int) []float64 {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	var values []float64
	for range rows {
		for _, v := range rng.Perm(cols) {
			values = append(values, float64(v-cols/2)/16)
		}
	}
	return values
}
