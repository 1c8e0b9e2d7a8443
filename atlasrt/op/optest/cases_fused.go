package optest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// fusedCases are calls of operations that stand for several (op.Fused). A case is skipped where the set has no fused kernel for it.
func fusedCases(o Options) []*Case {
	var list []*Case
	for _, scheme := range schemes {
		list = append(list, normLinearCases(scheme, o)...)
		list = append(list, gatedCases(scheme, o)...)
		list = append(list, addCases(scheme, o)...)
		list = append(list, downNormCases(scheme, o)...)
	}
	return append(list, append(normRouteCases(o), normRouteUpCases(o)...)...)
}

// fusedShapes are matrices of an even number of outputs.
func fusedShapes(scheme op.Scheme, o Options) []shape {
	list := []shape{{96, 96}, {160, 576}, {64, 4096}}
	if scheme.Block() == 1 {
		list = append(list, shape{34, 100})
	}
	if !o.Short {
		list = append(list, shape{2592, 160}, shape{512, 256}, shape{32, 2048}, shape{448, 1024})
		if matrix(scheme, 1, 1).Rounding != op.RoundingNone { // a size whose activations are rounded
			list = append(list, shape{256, 256})
		}
	}
	for i := range list {
		list[i].cols = whole(scheme, list[i].cols)
	}
	return list
}

// summed gives a case a residual and the buffer for its sum, where residual is true.
func (c *Case) summed(residual bool) *Case {
	if !residual {
		return c
	}
	return c.with("Residual", "Sum")
}

func word(say bool, text string) string {
	if say {
		return text
	}
	return ""
}

func normLinearCases(scheme op.Scheme, o Options) []*Case {
	var list []*Case
	for i, s := range fusedShapes(scheme, o) {
		for k, rows := range []int{1, 2, 4, 7, 8, 17} {
			x := op.NormLinear{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows), OutPitch: int32(s.rows + (i+k)%3), Eps: 1e-6}
			residual, bias := (i+k)%3 != 0, (i+k)%4 == 1
			name := fmt.Sprintf("%s %s rows %d", scheme, s, rows) + word(residual, " residual") + word(bias, " bias")
			list = append(list, of(name, x).summed(residual).with(word(bias, "Bias"), factored(scheme)))
		}
	}
	return list
}

func gatedCases(scheme op.Scheme, o Options) []*Case {
	rowCounts := []int{1, 3, 8, 16, 64, 300}
	if o.Short {
		rowCounts = []int{1, 3, 16, 65}
	}
	var list []*Case
	for i, s := range fusedShapes(scheme, o) {
		for k, rows := range rowCounts {
			if rows > 64 && s.rows*s.cols > 100_000 && s.rows < 2000 {
				continue // a reference in plain Go takes too long
			}
			x := op.GatedLinear{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows), Eps: 1e-5}
			name := fmt.Sprintf("%s %s rows %d", scheme, s, rows)
			list = append(list, of(name, x).with(factored(scheme)))
			if rows <= 16 {
				residual := (i+k)%3 != 0
				list = append(list, of(name+" norm"+word(residual, ", residual"), x).summed(residual).with("Scale", factored(scheme)))
			}
		}
	}
	return list
}

// addCases are products that are added to what their result holds.
func addCases(scheme op.Scheme, o Options) []*Case {
	var list []*Case
	for i, s := range fusedShapes(scheme, o) {
		for k, rows := range []int{1, 2, 4, 7, 8, 11, 16, 33, 64, 70} {
			x := op.LinearAdd{W: matrix(scheme, s.rows, s.cols), Rows: int32(rows), OutPitch: int32(s.rows + (i+k)%3)}
			bias := (i+k)%4 == 1
			name := fmt.Sprintf("%s %s rows %d", scheme, s, rows) + word(bias, " bias")
			list = append(list, of(name, x).with(word(bias, "Bias"), factored(scheme)))
		}
	}
	for _, s := range []struct{ experts, outputs, cols, rows, top int }{{8, 48, 160, 1, 8}, {4, 17, 96, 3, 2}, {8, 64, 64, 4, 3}, {16, 96, 96, 17, 4}, {5, 80, 384, 150, 3}, {32, 160, 128, 2, 8}} {
		if o.Short && s.rows > 17 {
			continue
		}
		s.cols = whole(scheme, s.cols)
		x := op.ExpertDownAdd{W: experts(scheme, s.experts, s.outputs, s.cols), Rows: int32(s.rows), TopK: int32(s.top)}
		name := fmt.Sprintf("%s %d×%d×%d rows %d top %d", scheme, s.experts, s.outputs, s.cols, s.rows, s.top)
		list = append(list, of(name, x).group(picks(s.rows, s.experts, s.top, 0)).with(factored(scheme)))
	}
	return list
}

// downNormCases have rows as wide as models have, and others.
func downNormCases(scheme op.Scheme, o Options) []*Case {
	var list []*Case
	for i, s := range []struct{ experts, outputs, cols, rows, top int }{{8, 48, 160, 1, 8}, {16, 96, 96, 17, 4}, {16, 2048, 64, 9, 3}, {8, 4096, 64, 12, 2}, {32, 160, 128, 64, 8}, {16, 2880, 64, 33, 2}, {16, 2048, 64, 28, 4}, {4, 17, 96, 10, 2}} {
		if o.Short && s.rows > 17 {
			continue
		}
		s.cols = whole(scheme, s.cols)
		x := op.ExpertDownNorm{W: experts(scheme, s.experts, s.outputs, s.cols), Rows: int32(s.rows), TopK: int32(s.top), Eps: []float32{1e-6, 1e-5}[i%2]}
		name := fmt.Sprintf("%s %d×%d×%d rows %d top %d", scheme, s.experts, s.outputs, s.cols, s.rows, s.top)
		list = append(list, of(name, x).group(picks(s.rows, s.experts, s.top, 0)).with(factored(scheme)))
	}
	return list
}

func normRouteCases(o Options) []*Case {
	var list []*Case
	for i, s := range []struct{ rows, experts, cols, top int }{{1, 128, 2048, 8}, {16, 128, 2048, 8}, {4, 128, 2048, 8}, {8, 64, 576, 6}, {11, 48, 640, 4}, {2, 8, 96, 2}, {3, 5, 100, 1}, {5, 128, 1536, 8}, {7, 100, 1000, 3}, {33, 128, 2048, 8}} {
		if o.Short && i > 6 {
			break
		}
		for k := range 4 {
			x := op.NormRoute{
				W: matrix(op.SchemeBF16, s.experts, s.cols), Rows: int32(s.rows), TopK: int32(s.top),
				Normalise: int32(k % 2), Routing: op.Routing(k / 2), Factor: []float32{1, 2.5}[i%2], Eps: 1e-6,
			}
			residual := (i+k)%2 == 0
			c := of(fmt.Sprintf("rows %d experts %d columns %d top %d normalise %d routing %d", s.rows, s.experts, s.cols, s.top, x.Normalise, x.Routing)+word(residual, " residual"), x)
			c.apart("W", uint64(k), residual)
			list = append(list, c)
		}
	}
	for i, s := range []struct{ rows, experts, cols, top int }{{1, 257, 2048, 9}, {1, 513, 2048, 11}, {3, 17, 96, 3}, {4, 257, 2048, 9}, {16, 513, 2048, 11}, {1, 129, 1536, 7}, {1, 257, 3072, 9}, {1, 33, 4096, 5}, {1, 273, 1024, 33}, {1, 513, 1984, 2}, {1, 257, 4096, 9}} {
		if o.Short && i > 2 {
			break
		}
		x := op.NormRoute{
			W: matrix(op.SchemeBF16, s.experts, s.cols), Rows: int32(s.rows), TopK: int32(s.top), Shared: 1,
			Normalise: int32((i + 1) % 2), Routing: op.Routing(i / 3 % 2), Factor: 1, Eps: 1e-6,
		}
		c := of(fmt.Sprintf("shared, rows %d experts %d columns %d top %d normalise %d routing %d", s.rows, s.experts, s.cols, s.top, x.Normalise, x.Routing), x)
		c.apart("W", uint64(i), i%2 == 0)
		list = append(list, c)
	}
	return list
}

func normRouteUpCases(o Options) []*Case {
	var list []*Case
	for _, scheme := range schemes {
		for i, s := range []struct{ rows, experts, inner, cols, top int }{{1, 128, 16, 512, 8}, {1, 16, 96, 2048, 8}, {2, 16, 48, 256, 3}, {1, 16, 768, 256, 8}, {1, 48, 16, 640, 1}, {1, 112, 16, 1984, 6}, {1, 16, 1008, 256, 5}} {
			if o.Short && i > 2 {
				break
			}
			s.cols = whole(scheme, s.cols)
			for k := range 2 {
				x := op.NormRouteUp{
					W: experts(scheme, s.experts, 2*s.inner, s.cols), Router: matrix(op.SchemeBF16, s.experts, s.cols), Rows: int32(s.rows), TopK: int32(s.top),
					Normalise: int32(k), Routing: op.Routing((i + k) / 2 % 2), Factor: []float32{1, 2.5}[i%2], Eps: 1e-6,
				}
				residual := (i+k)%2 == 0
				name := fmt.Sprintf("%s rows %d experts %d×%d×%d top %d normalise %d routing %d", scheme, s.rows, s.experts, 2*s.inner, s.cols, s.top, x.Normalise, x.Routing)
				c := of(name+word(residual, " residual"), x).with(factored(scheme))
				c.apart("Router", uint64(k), residual)
				list = append(list, c)
			}
		}
		for i, s := range []struct{ experts, inner, cols, top int }{{257, 16, 512, 9}, {17, 96, 2048, 3}, {513, 16, 1024, 11}, {65, 512, 256, 9}} {
			if o.Short && i > 0 {
				break
			}
			x := op.NormRouteUp{
				W: experts(scheme, s.experts, 2*s.inner, whole(scheme, s.cols)), Router: matrix(op.SchemeBF16, s.experts, whole(scheme, s.cols)), Rows: 1, TopK: int32(s.top),
				Shared: 1, Normalise: 1, Routing: op.Routing(i / 2 % 2), Factor: 1, Eps: 1e-6,
			}
			c := of(fmt.Sprintf("%s shared, experts %d×%d×%d top %d", scheme, s.experts, 2*s.inner, x.W.Cols, s.top), x).with(factored(scheme))
			c.apart("Router", uint64(i), i%2 == 0)
			list = append(list, c)
		}
	}
	return list
}

// apart gives a case a router whose logits differ so much, once rounded to bf16, that no two experts tie. The router's row of expert e is
// one in column e and small numbers in the columns beyond the experts, the same in all rows.
func (c *Case) apart(router string, seed uint64, residual bool) {
	w := c.matrix(router)
	rows, experts, cols := int(c.args.FieldByName("Rows").Int()), int(w.Rows), int(w.Cols)
	rng := rand.New(rand.NewPCG(uint64(cols), seed))
	rest := make([]float64, cols)
	for j := range rest {
		rest[j] = rng.NormFloat64() / float64(4*cols)
	}
	for e := range experts {
		row := append(make([]float64, experts), rest[experts:]...)
		row[e] = 1
		c.numbers[router] = append(c.numbers[router], row...)
	}
	c.numbers["Scale"] = slices.Repeat([]float64{1}, cols)
	levels := distinct(rows, experts)
	for i, level := range levels { // from -8 to 8: of many experts only the highest differ, since bf16 has no more numbers
		levels[i] = max(level-max(float64(experts/2)/16-8, 0), -8)
	}
	for r := range rows {
		in := append([]float64{}, levels[r*experts:(r+1)*experts]...)
		for len(in) < cols {
			in = append(in, 2*rng.NormFloat64())
		}
		c.numbers["In"] = append(c.numbers["In"], in...)
	}
	if !residual {
		return
	}
	for j := range c.numbers["In"] { // the residual and the input have half of each number
		c.numbers["In"][j] /= 2
	}
	c.summed(true).numbers["Residual"] = slices.Clone(c.numbers["In"])
}
