package nn

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// partly is the oracle with only some of its fused operations, and counts their calls and those of norms.
type partly struct {
	*oracle.Set
	serves []string
	served map[string]int
}

func newPartly(serves ...string) partly {
	return partly{oracle.New(op.F32), serves, map[string]int{}}
}

func serve[T any](p partly, name string, q op.Stream, x T, compute func(op.Stream, T) bool) bool {
	if !slices.Contains(p.serves, name) || !compute(q, x) {
		return false
	}
	p.served[name]++
	return true
}

func (p partly) RMSNorm(q op.Stream, x op.RMSNorm) {
	p.Set.RMSNorm(q, x)
	p.served["RMSNorm"]++
}

func (p partly) NormLinear(q op.Stream, x op.NormLinear) bool {
	return serve(p, "NormLinear", q, x, p.Set.NormLinear)
}

// GatedLinear is two for this purpose: with a norm and without.
func (p partly) GatedLinear(q op.Stream, x op.GatedLinear) bool {
	name := "GatedLinear"
	if x.Scale != 0 {
		name = "NormGatedLinear"
	}
	return serve(p, name, q, x, p.Set.GatedLinear)
}

func (p partly) NormRoute(q op.Stream, x op.NormRoute) bool {
	return serve(p, "NormRoute", q, x, p.Set.NormRoute)
}

func (p partly) NormRouteUp(q op.Stream, x op.NormRouteUp) bool {
	return serve(p, "NormRouteUp", q, x, p.Set.NormRouteUp)
}

func (p partly) LinearAdd(q op.Stream, x op.LinearAdd) bool {
	return serve(p, "LinearAdd", q, x, p.Set.LinearAdd)
}

func (p partly) ExpertDownAdd(q op.Stream, x op.ExpertDownAdd) bool {
	return serve(p, "ExpertDownAdd", q, x, p.Set.ExpertDownAdd)
}

func (p partly) ExpertDownNorm(q op.Stream, x op.ExpertDownNorm) bool {
	return serve(p, "ExpertDownNorm", q, x, p.Set.ExpertDownNorm)
}

// Sizes of the residual streams of tests.
const (
	testRows   = 3
	testHidden = 8
	testEps    = 1e-6
)

// fixture makes buffers and weights of random numbers.
type fixture struct {
	random *rand.Rand
	pin    runtime.Pinner
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{random: rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(f.pin.Unpin)
	return f
}

func (f *fixture) floats(n int) ([]float32, op.Ptr) {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(f.random.IntN(64)-32) / 32 // which bf16 holds exactly
	}
	return values, oracle.Address(&f.pin, values)
}

// stack is count matrices.
func (f *fixture) stack(count, rows, cols int) ([]float32, op.Weight) {
	values, _ := f.floats(count * rows * cols)
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(v)>>16))
	}
	return values, op.Weight{Data: oracle.Address(&f.pin, raw), Scheme: op.SchemeBF16, Rows: int32(rows), Cols: int32(cols), Count: int32(count), Stride: int64(2 * rows * cols)}
}

// linear is one matrix.
func (f *fixture) linear(rows, cols int) ([]float32, Linear) {
	values, w := f.stack(1, rows, cols)
	return values, Linear{pieces: []piece{{weight: w}}, rows: int32(rows)}
}

func (f *fixture) norm() ([]float32, Norm) {
	scale, at := f.floats(testHidden)
	return scale, Norm{scale: at, cols: testHidden, eps: testEps}
}

// stream is a residual stream at its start, which it holds as want, and where the input of bodies comes to lie.
func (f *fixture) stream(ops Ops) (h *Residual, want []float64, normed []float32) {
	start, stream := f.floats(testRows * testHidden)
	_, sum := f.floats(testRows * testHidden)
	_, x := f.floats(testRows * testHidden)
	normed, at := f.floats(testRows * testHidden)
	return &Residual{ops: ops, act: op.F32, rows: testRows, stream: stream, sum: sum, x: x, normed: at}, widened(start), normed
}

func (f *fixture) room() *Room {
	return &Room{next: oracle.Address(&f.pin, make([]float32, 1<<10)), rows: testRows, act: op.F32}
}

func widened(values []float32) []float64 {
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}

// normalise is RMSNorm of rows.
func normalise(rows []float64, scale []float32) []float64 {
	out := make([]float64, len(rows))
	for first := 0; first < len(rows); first += len(scale) {
		mean := 0.0
		for _, v := range rows[first : first+len(scale)] {
			mean += v * v / float64(len(scale))
		}
		for c, s := range scale {
			out[first+c] = rows[first+c] * float64(s) / math.Sqrt(mean+testEps)
		}
	}
	return out
}

// multiply is a product of rows of so many columns and a matrix.
func multiply(matrix []float32, rows []float64, cols int) []float64 {
	var out []float64
	for ; len(rows) > 0; rows = rows[cols:] {
		for first := 0; first < len(matrix); first += cols {
			sum := 0.0
			for c, w := range matrix[first : first+cols] {
				sum += float64(w) * rows[c]
			}
			out = append(out, sum)
		}
	}
	return out
}

// gate is silu(g)·u of rows, whose first half is g and whose second half is u.
func gate(rows []float64, half int) []float64 {
	var out []float64
	for ; len(rows) > 0; rows = rows[2*half:] {
		for i := range half {
			out = append(out, rows[i]*sigmoid(rows[i])*rows[half+i])
		}
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func add(to, x []float64) {
	for i := range to {
		to[i] += x[i]
	}
}

// near fails where numbers differ.
func near(t *testing.T, got []float32, want []float64) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= 1e-5*max(1, math.Abs(w))) {
			t.Errorf("element %d is %v, want %v", i, got[i], w)
		}
	}
}
