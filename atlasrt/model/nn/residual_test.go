package nn

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// partly is the oracle with only some of its fused operations.
type partly struct {
	*oracle.Set
	normLinear, linearAdd bool
}

func (p partly) NormLinear(q op.Stream, x op.NormLinear) bool {
	return p.normLinear && p.Set.NormLinear(q, x)
}

func (p partly) LinearAdd(q op.Stream, x op.LinearAdd) bool {
	return p.linearAdd && p.Set.LinearAdd(q, x)
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
func TestResidualAddsWhatTheFormulaSays(t *testing.T) {
	const rows, hidden, blocks, eps = 3, 8, 4, 1e-6
	for _, sandwich := range []bool{false, true} {
		for i, ops := range []partly{{}, {normLinear: true}, {linearAdd: true}, {normLinear: true, linearAdd: true}} {
			t.Run(fmt.Sprintf("after=%v/%d", sandwich, i), func(t *testing.T) {
				ops.Set = oracle.New(op.F32)
				var pin runtime.Pinner
				defer pin.Unpin()
				random := rand.New(rand.NewPCG(1, 2))
				floats := func(n int) ([]float32, op.Ptr) {
					values := make([]float32, n)
					for i := range values {
						values[i] = float32(random.IntN(64)-32) / 32 // which bf16 holds exactly
					}
					return values, oracle.Address(&pin, values)
				}
				matrix := func() ([]float32, Linear) {
					values, _ := floats(hidden * hidden)
					var raw []byte
					for _, v := range values {
						raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(v)>>16))
					}
					w := op.Weight{Data: oracle.Address(&pin, raw), Scheme: op.SchemeBF16, Rows: hidden, Cols: hidden, Count: 1}
					return values, Linear{pieces: []piece{{weight: w}}, rows: hidden}
				}
				norm := func() ([]float32, Norm) {
					scale, at := floats(hidden)
					return scale, Norm{scale: at, cols: hidden, eps: eps}
				}
				start, stream := floats(rows * hidden)
				_, sum := floats(rows * hidden)
				_, x := floats(rows * hidden)
				got, normed := floats(rows * hidden)
				h := Residual{ops: ops, act: op.F32, rows: rows, stream: stream, sum: sum, x: x, normed: normed}
				want := make([]float64, rows*hidden)
				for i, v := range start {
					want[i] = float64(v)
				}
				for range blocks {
					var b twice
					before, after := Norm{}, Norm{}
					var scaleBefore, scaleAfter, up, down []float32
					scaleBefore, before = norm()
					scaleAfter, after = norm()
					up, b.up = matrix()
					down, b.down = matrix()
					room := Room{next: oracle.Address(&pin, make([]float32, rows*hidden)), rows: rows, act: op.F32}
					b.Place(&room)
					block := Block{Before: before, Body: &b}
					if sandwich {
						block.After = &after
					}
					h.enter(block, Norm{})
					b.Forward(nil, nil, &h)
					y := multiply(down, multiply(up, normalise(want, scaleBefore, eps)))
					if sandwich {
						y = normalise(y, scaleAfter, eps)
					}
					for i := range want {
						want[i] += y[i]
					}
				}
				scale, last := norm()
				h.enter(Block{Before: last}, Norm{})
				if at := h.Normed(); at != normed {
					t.Fatalf("the norm lies at %x, want %x", at, normed)
				}
				for i, w := range normalise(want, scale, eps) {
					if math.Abs(float64(got[i])-w) > 1e-5 {
						t.Errorf("element %d is %v, want %v", i, got[i], w)
					}
				}
			})
		}
	}
}

// normalise is RMSNorm of rows.
func normalise(rows []float64, scale []float32, eps float64) []float64 {
	out := make([]float64, len(rows))
	for first := 0; first < len(rows); first += len(scale) {
		mean := 0.0
		for _, v := range rows[first : first+len(scale)] {
			mean += v * v / float64(len(scale))
		}
		for c, s := range scale {
			out[first+c] = rows[first+c] * float64(s) / math.Sqrt(mean+eps)
		}
	}
	return out
}

// multiply is a product of rows and a square matrix.
func multiply(matrix []float32, rows []float64) []float64 {
	n := int(math.Sqrt(float64(len(matrix))))
	out := make([]float64, len(rows))
	for i := range out {
		for k := range n {
			out[i] += float64(matrix[i%n*n+k]) * rows[i/n*n+k]
		}
	}
	return out
}
