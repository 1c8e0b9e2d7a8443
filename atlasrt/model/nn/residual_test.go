package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// formula is what a body gives, computed from rows of norm(h).
type formula func(x []float64) []float64

// fusion is a fused operation that a body asks for.
type fusion struct {
	name  string
	norms int  // launches of norms that four blocks and the end of the stream take where nothing else is fused
	last  bool // it adds to the stream, so that no norm can follow
}

// adds runs blocks with each fused operation alone, with all and with none, and compares the stream with what formulas give.
func adds(t *testing.T, after bool, fused []fusion, body func(f *fixture, ops Ops) (Body, formula)) {
	t.Helper()
	var names []string
	for _, one := range fused {
		names = append(names, one.name)
		t.Run(fmt.Sprintf("after=%v/%s", after, one.name), func(t *testing.T) {
			served := addsWith(t, after, []string{one.name}, body)
			norms, asked := one.norms, served[one.name] > 0
			if after && one.last {
				norms = 5
			}
			if after {
				norms += 4
			}
			if asked != !(after && one.last) || served["RMSNorm"] != norms {
				t.Errorf("%s was served: %v; there were %d norms, want %d", one.name, asked, served["RMSNorm"], norms)
			}
		})
	}
	for _, serves := range [][]string{nil, names} {
		t.Run(fmt.Sprintf("after=%v/%v", after, serves), func(t *testing.T) { addsWith(t, after, serves, body) })
	}
}

func addsWith(t *testing.T, after bool, serves []string, body func(f *fixture, ops Ops) (Body, formula)) (served map[string]int) {
	t.Helper()
	f, ops := newFixture(t), newPartly(serves...)
	h, want, normed := f.stream(ops)
	scale, before := f.norm()
	for range 4 {
		b, y := body(f, ops)
		b.Place(f.room())
		nextScale, next := f.norm()
		block := Block{Before: before, Body: b}
		afterScale, behind := f.norm()
		if after {
			block.After = &behind
		}
		h.enter(block, next)
		b.Forward(nil, &model.Inputs{Rows: testRows}, h)
		result := y(normalise(want, scale))
		if after {
			result = normalise(result, afterScale)
		}
		add(want, result)
		scale, before = nextScale, next
	}
	h.enter(Block{Before: before}, Norm{})
	if at := h.Normed(); at != h.normed {
		t.Fatalf("the norm lies at %x, want %x", at, h.normed)
	}
	near(t, normed, normalise(want, scale))
	return ops.served
}

// twice is a body of two products.
type twice struct {
	up, down Linear
	between  op.Ptr
}

func (b *twice) Place(r *Room) { b.between = r.Act(b.up.rows) }

func (b *twice) Forward(_ op.Stream, _ *model.Inputs, h *Residual) {
	h.Project(b.up, b.between)
	h.Add(b.down, b.between)
}

// The stream is the same whichever kernels are fused, with norms after blocks and without.
func TestResidualAddsProducts(t *testing.T) {
	for _, after := range []bool{false, true} {
		adds(t, after, []fusion{{"NormLinear", 1, false}, {"LinearAdd", 5, true}}, func(f *fixture, _ Ops) (Body, formula) {
			up, upLinear := f.linear(testHidden, testHidden)
			down, downLinear := f.linear(testHidden, testHidden)
			return &twice{up: upLinear, down: downLinear}, func(x []float64) []float64 {
				return multiply(down, multiply(up, x, testHidden), testHidden)
			}
		})
	}
}

// A network with a gate, in one launch, with its norm in another, or in three.
func TestResidualGates(t *testing.T) {
	const columns = 6
	for _, after := range []bool{false, true} {
		adds(t, after, []fusion{{"NormGatedLinear", 1, false}, {"GatedLinear", 5, false}}, func(f *fixture, _ Ops) (Body, formula) {
			up, upLinear := f.linear(2*columns, testHidden)
			down, downLinear := f.linear(testHidden, columns)
			return &MLP{up: upLinear, down: downLinear}, func(x []float64) []float64 {
				return multiply(down, gate(multiply(up, x, testHidden), columns), columns)
			}
		})
	}
}

// Experts of a mixture: with a shared one among them, with one beside them, and with none. AddGated is for the second, which has no norm after it.
func TestResidualAddsExperts(t *testing.T) {
	const experts, topK, columns = 5, 2, 4
	for _, kind := range []string{"none", "rides", "beside"} {
		for _, after := range []bool{false, true} {
			if kind == "beside" && after {
				continue
			}
			fused := []fusion{{"NormRoute", 1, false}, {"NormRouteUp", 1, false}, {"ExpertDownAdd", 5, true}, {"ExpertDownNorm", 1, true}}
			if kind == "beside" {
				fused[1].norms = 5 // of which the other expert needs one
			}
			t.Run(kind, func(t *testing.T) {
				adds(t, after, fused, func(f *fixture, ops Ops) (Body, formula) {
					shared := 0
					if kind == "rides" {
						shared = 1
					}
					router, routerLinear := f.linear(experts+shared, testHidden)
					up, upStack := f.stack(experts+shared, 2*columns, testHidden)
					down, downStack := f.stack(experts+shared, testHidden, columns)
					m := &Mixture{ops: ops, act: op.F32, router: routerLinear, up: upStack, down: downStack, topK: int32(topK + shared), rides: int32(shared), normalise: 1}
					apart := func([]float64) []float64 { return make([]float64, testHidden) }
					if kind == "beside" {
						const wide = 3
						shared, sharedLinear := f.linear(2*wide, testHidden)
						back, backLinear := f.linear(testHidden, wide)
						share, shareLinear := f.linear(1, testHidden)
						m.beside, m.gate = &MLP{up: sharedLinear, down: backLinear}, shareLinear
						apart = func(x []float64) []float64 {
							return scaled(multiply(back, gate(multiply(shared, x, testHidden), wide), wide), sigmoid(multiply(share, x, testHidden)[0]))
						}
					}
					expert := func(e int, x []float64) []float64 {
						each := testHidden * columns
						return multiply(down[e*each:(e+1)*each], gate(multiply(up[2*e*each:2*(e+1)*each], x, testHidden), columns), columns)
					}
					return m, func(x []float64) []float64 {
						var out []float64
						for ; len(x) > 0; x = x[testHidden:] {
							row := x[:testHidden]
							y, logits := apart(row), multiply(router, row, testHidden)
							if shared == 1 {
								add(y, scaled(expert(experts, row), sigmoid(logits[experts])))
							}
							chosen, sum := ordered(logits[:experts])[:topK], 0.0
							for _, e := range chosen {
								sum += math.Exp(logits[e])
							}
							for _, e := range chosen {
								add(y, scaled(expert(e, row), math.Exp(logits[e])/sum))
							}
							out = append(out, y...)
						}
						return out
					}
				})
			})
		}
	}
}

// ordered is the numbers of values, the largest first.
func ordered(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if values[a] > values[b] {
			return -1
		}
		return 1
	})
	return order
}

func scaled(x []float64, by float64) []float64 {
	for i := range x {
		x[i] *= by
	}
	return x
}

// AddGated adds to the whole stream, also where the block before left its result apart from it.
func TestAddGatedAfterAResultThatIsApart(t *testing.T) {
	f := newFixture(t)
	h, want, normed := f.stream(newPartly())
	matrix, product := f.linear(testHidden, testHidden)
	in, at := f.floats(testRows * testHidden)
	gates, gate := f.floats(testRows)
	_, before := f.norm()
	scale, last := f.norm()
	h.enter(Block{Before: before}, before)
	h.Add(product, at)
	h.enter(Block{Before: before}, last)
	h.AddGated(at, gate)
	h.Add(product, at)
	h.enter(Block{Before: last}, Norm{})
	h.Normed()
	x := multiply(matrix, widened(in), testHidden)
	add(want, x)
	add(want, x)
	for r, g := range gates {
		add(want[r*testHidden:(r+1)*testHidden], scaled(widened(in[r*testHidden:(r+1)*testHidden]), sigmoid(float64(g))))
	}
	near(t, normed, normalise(want, scale))
}

// What a norm after the block would have to see whole is not added in two parts.
func TestTwoAdditionsBeforeANorm(t *testing.T) {
	f := newFixture(t)
	h, _, _ := f.stream(newPartly())
	_, before := f.norm()
	_, after := f.norm()
	h.enter(Block{Before: before, After: &after}, Norm{})
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	h.AddGated(h.x, h.x)
}
