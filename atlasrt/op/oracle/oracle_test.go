package oracle_test

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// bench is a set with memory to compute in.
type bench struct {
	*testing.T
	*oracle.Set
	device *host.Device
	stream device.Stream
}

func newBench(t *testing.T) *bench {
	d := host.New(0)
	s, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, oracle.New(op.F32), d, s}
}

// put places values, get reads them back.
func put[T any](b *bench, values ...T) op.Ptr {
	b.Helper()
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		b.Fatal(err)
	}
	p, err := b.device.Alloc(int64(len(data)))
	if err != nil {
		b.Fatal(err)
	}
	if err := b.device.CopyIn(p, data); err != nil {
		b.Fatal(err)
	}
	return p
}

func get[T any](b *bench, p op.Ptr, n int) []T {
	b.Helper()
	if err := b.stream.Sync(); err != nil {
		b.Fatal(err)
	}
	values := make([]T, n)
	data := make([]byte, binary.Size(values))
	if err := b.device.CopyOut(data, p); err != nil {
		b.Fatal(err)
	}
	if _, err := binary.Decode(data, binary.LittleEndian, values); err != nil {
		b.Fatal(err)
	}
	return values
}

func near(b *bench, name string, got []float32, want ...float32) {
	b.Helper()
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-6*max(1, math.Abs(float64(want[i]))) {
			b.Errorf("%s: got %v, want %v", name, got, want)
			return
		}
	}
}

// matrix is a bf16 weight of small integers, which bf16 holds exactly.
func matrix(b *bench, rows, cols int32, values ...float32) op.Weight {
	bits := make([]uint16, len(values))
	for i, v := range values {
		bits[i] = uint16(math.Float32bits(v) >> 16)
	}
	count := int32(len(values)) / (rows * cols)
	return op.Weight{Data: put(b, bits...), Stride: int64(rows) * int64(cols) * 2, Scheme: op.SchemeBF16, Rows: rows, Cols: cols, Count: count}
}

func TestRMSNorm(t *testing.T) {
	b := newBench(t)
	x := op.RMSNorm{In: put[float32](b, 1, 2, 2, 3), Residual: put[float32](b, 2, 2, -2, -3), Scale: put[float32](b, 1, 2, 3, 4), Rows: 1, Cols: 4, Eps: 0}
	x.Out = x.In
	b.RMSNorm(b.stream, x)
	near(b, "sum", get[float32](b, x.Residual, 4), 3, 4, 0, 0)
	near(b, "norm", get[float32](b, x.Out, 4), 3/2.5, 8/2.5, 0, 0)
}

func TestLinearPitchBiasAndScale(t *testing.T) {
	b := newBench(t)
	w := matrix(b, 2, 3, 1, 2, 3, 4, 5, 6)
	w.Scale = put[float32](b, 1, 10)
	x := op.Linear{Out: put(b, make([]float32, 5)...), In: put[float32](b, 1, 1, 1, 0, 1, 0), Bias: put[float32](b, 100, 200), W: w, Rows: 2, OutPitch: 3}
	b.Linear(b.stream, x)
	near(b, "out", get[float32](b, x.Out, 5), 106, 350, 0, 102, 250)
}

// Codes and scales lie apart: each scheme's matrix is read through Embedding, whose rows are the weights themselves.
func TestScalesApartFromCodes(t *testing.T) {
	b := newBench(t)
	// 17 rows of 130 columns are 2×2 blocks. All codes are 1 but for the first and the last of each row.
	const rows, cols = 17, 130
	f8 := make([]byte, rows*cols)
	for i := range f8 {
		f8[i] = 0x38
	}
	for n := range rows {
		f8[n*cols], f8[n*cols+cols-1] = 0x40, 0xc4 // 2 and -3
	}
	var scales []byte
	for _, v := range []float32{1, 10, 100, 1000} {
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(v))
	}
	// Two rows of 32 columns of fp4 are 2×2 blocks: 0.5 and -6 by turns.
	fp4 := make([]byte, 2*16, 2*18)
	for i := range fp4 {
		fp4[i] = 0xf1
	}
	factors := put(b, make([]float32, 2*rows)...)
	if err := b.device.CopyIn(factors+4*(rows-1), binary.LittleEndian.AppendUint32(nil, math.Float32bits(7))); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		scheme     op.Scheme
		rows, cols int32
		raw        []byte
		factors    op.Ptr
		row        int32
		want       map[int]float32
	}{
		{op.SchemeF8, rows, cols, f8, 0, 3, map[int]float32{0: 2, 1: 1, 129: -3}},
		{op.SchemeF8, rows, cols, f8, factors, 16, map[int]float32{0: 14, 1: 7, 129: -21}},
		{op.SchemeF8Block, rows, cols, append(f8[:len(f8):len(f8)], scales...), 0, 15, map[int]float32{0: 2, 127: 1, 128: 10, 129: -30}},
		{op.SchemeF8Block, rows, cols, append(f8[:len(f8):len(f8)], scales...), 0, 16, map[int]float32{0: 200, 127: 100, 128: 1000, 129: -3000}},
		{op.SchemeNVFP4, 2, 32, append(fp4, 0x38, 0x40, 0x30, 0xb8), 0, 0, map[int]float32{0: 0.5, 1: -6, 15: -6, 16: 1, 31: -12}},
		{op.SchemeNVFP4, 2, 32, append(fp4, 0x38, 0x40, 0x30, 0xb8), 0, 1, map[int]float32{0: 0.25, 15: -3, 16: -0.5, 17: 6}},
	}
	for _, c := range cases {
		w := op.Weight{Scheme: c.scheme, Rows: c.rows, Cols: c.cols, Count: 1, Scale: c.factors}
		w.Data = put(b, make([]byte, b.PackedBytes(c.scheme, c.rows, c.cols))...)
		b.Pack(b.stream, op.Pack{W: w, Raw: put(b, c.raw...), Bytes: int64(len(c.raw))})
		x := op.Embedding{Out: put(b, make([]float32, c.cols)...), IDs: put(b, c.row), W: w, Rows: 1}
		b.Embedding(b.stream, x)
		got := get[float32](b, x.Out, int(c.cols))
		for k, want := range c.want {
			if got[k] != want {
				t.Errorf("%s, row %d: column %d is %g, want %g", c.scheme, c.row, k, got[k], want)
			}
		}
	}
}

func TestLogitsAndEmbedding(t *testing.T) {
	b := newBench(t)
	w := matrix(b, 2, 2, 1, 2, 3, 4)
	l := op.Logits{Out: put(b, make([]float32, 6)...), In: put[float32](b, 1, 0, 0, 1), Index: put[int32](b, 1, -1, 0), W: w, Rows: 3, InRows: 2}
	b.Logits(b.stream, l)
	near(b, "logits", get[float32](b, l.Out, 6), 2, 4, 0, 0, 1, 3)
	e := op.Embedding{Out: put(b, make([]float32, 6)...), IDs: put[int32](b, 1, 2, 0), W: w, Rows: 3}
	b.Embedding(b.stream, e)
	near(b, "embedding", get[float32](b, e.Out, 6), 3, 4, 0, 0, 1, 2)
}

func TestUnknownSchemeFailsTheStream(t *testing.T) {
	b := newBench(t)
	for _, w := range []op.Weight{{Scheme: 0, Rows: 1, Cols: 32}, {Scheme: 99, Rows: 1, Cols: 32}, {Scheme: op.SchemeQ4_0, Rows: 1, Cols: 33}} {
		b.Linear(b.stream, op.Linear{W: w})
		if err := b.stream.Sync(); err == nil {
			t.Errorf("Linear with %+v: got no error", w)
		}
		if got := b.PackedBytes(w.Scheme, w.Rows, w.Cols); got != 0 {
			t.Errorf("PackedBytes of %+v: got %d, want 0", w, got)
		}
	}
}

func TestRotaryCache(t *testing.T) {
	b := newBench(t)
	// One query head, one key head, four elements of which two pairs turn by a quarter and by nothing.
	angles := put[float32](b, 0, 1, 1, 0)
	cases := []struct {
		pairing op.Pairing
		query   []float32
	}{
		{op.PairHalf, []float32{-3, 2, 1, 4}},
		{op.PairNeighbours, []float32{-2, 1, 3, 4}},
	}
	for _, c := range cases {
		x := op.RotaryCache{
			QKV: put[float32](b, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8), K: put(b, make([]float32, 16)...), V: put(b, make([]float32, 16)...),
			Angles: angles, Slots: put[int32](b, 3), Rows: 1, Heads: 1, KVHeads: 1, HeadDim: 4, Pairs: 2, Blocks: 2, BlockSize: 2, Pairing: c.pairing, KVType: op.F32,
		}
		b.RotaryCache(b.stream, x)
		near(b, "query", get[float32](b, x.QKV, 4), c.query...)
		near(b, "key", get[float32](b, x.K, 16)[12:], c.query...)
		near(b, "value", get[float32](b, x.V, 16)[12:], 5, 6, 7, 8)
		near(b, "other keys", get[float32](b, x.K, 12), make([]float32, 12)...)
	}
}

func TestRotaryAnglesAxes(t *testing.T) {
	b := newBench(t)
	x := op.RotaryAngles{
		Out: put(b, make([]float32, 8)...), Positions: put[int32](b, 0, 1, 2, 3), Frequency: put[float32](b, 1, 0.5), Axis: put[int32](b, 1, 0),
		Rows: 2, Axes: 2, Pairs: 2, Scale: 2,
	}
	b.RotaryAngles(b.stream, x)
	cos, sin := func(a float64) float32 { return float32(2 * math.Cos(a)) }, func(a float64) float32 { return float32(2 * math.Sin(a)) }
	near(b, "angles", get[float32](b, x.Out, 8), cos(2), cos(0), sin(2), sin(0), cos(3), cos(.5), sin(3), sin(.5))
}

func TestPagedAttention(t *testing.T) {
	b := newBench(t)
	// Keys are alike, so that each row gives the mean of the values it sees: tokens 0…2 hold 1, 2 and 6.
	x := op.PagedAttention{
		Out: put(b, make([]float32, 4)...), Q: put[float32](b, 1, 0, 1, 0, 1, 0, 1, 0), K: put(b, make([]float32, 4)...), V: put[float32](b, 6, 99, 1, 2),
		Starts: put[int32](b, 0, 0, 3), Lengths: put[int32](b, 0, 3), Tables: put[int32](b, -1, -1, 1, 0),
		Rows: 4, QPitch: 2, Seqs: 2, MaxBlocks: 2, Heads: 1, KVHeads: 1, HeadDim: 1, Blocks: 2, BlockSize: 2, KVType: op.F32, Scale: 1,
	}
	b.PagedAttention(b.stream, x)
	near(b, "all", get[float32](b, x.Out, 4), 1, 1.5, 3, 0)
	x.Window = 2
	b.PagedAttention(b.stream, x)
	near(b, "window", get[float32](b, x.Out, 4), 1, 1.5, 4, 0)
}

func TestMoE(t *testing.T) {
	b := newBench(t)
	r := op.Route{
		IDs: put(b, make([]int32, 4)...), Weights: put(b, make([]float32, 4)...), Order: put(b, make([]int32, 4)...), Starts: put(b, make([]int32, 4)...),
		Logits: put(b, float32(math.Log(1)), float32(math.Log(2)), float32(math.Log(5)), 3, 3, 0), Rows: 2, Experts: 3, TopK: 2, Normalise: 1, Scale: 7,
	}
	b.Route(b.stream, r)
	if got, want := get[int32](b, r.IDs, 4), []int32{2, 1, 0, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("ids: got %v, want %v", got, want)
	}
	near(b, "weights", get[float32](b, r.Weights, 4), 5, 2, 3.5, 3.5)
	if got, want := get[int32](b, r.Order, 4), []int32{2, 1, 3, 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("order: got %v, want %v", got, want)
	}
	if got, want := get[int32](b, r.Starts, 4), []int32{0, 1, 3, 4}; !reflect.DeepEqual(got, want) {
		t.Errorf("starts: got %v, want %v", got, want)
	}

	up := op.ExpertUp{
		Out: put(b, make([]float32, 4)...), In: put[float32](b, 1, 2), IDs: r.IDs, Order: r.Order, Starts: r.Starts,
		W: matrix(b, 2, 1, 1, 2, 3, 4, 5, 6), Rows: 2, TopK: 2,
	}
	b.ExpertUp(b.stream, up)
	silu := func(x float64) float32 { return float32(x / (1 + math.Exp(-x))) }
	near(b, "up", get[float32](b, up.Out, 4), 6*silu(5), 4*silu(3), 4*silu(2), 8*silu(6))

	down := op.ExpertDown{
		Out: put(b, make([]float32, 2)...), In: put[float32](b, 1, 2, 3, 4), IDs: r.IDs, Weights: r.Weights, Order: r.Order, Starts: r.Starts,
		W: matrix(b, 1, 1, 1, 2, 3), Rows: 2, TopK: 2,
	}
	b.ExpertDown(b.stream, down)
	near(b, "down", get[float32](b, down.Out, 2), 5*3*1+2*2*2, 3.5*1*3+3.5*2*4)
}

func TestRouteSigmoidBias(t *testing.T) {
	b := newBench(t)
	r := op.Route{
		IDs: put(b, make([]int32, 1)...), Weights: put(b, make([]float32, 1)...), Order: put(b, make([]int32, 1)...), Starts: put(b, make([]int32, 4)...),
		Logits: put[float32](b, 0, 1, 2), Bias: put[float32](b, 1, 0, 0), Rows: 1, Experts: 3, TopK: 1, Routing: op.RouteSigmoid, Scale: 2,
	}
	b.Route(b.stream, r)
	if got := get[int32](b, r.IDs, 1)[0]; got != 0 {
		t.Errorf("id: got %d, want 0: the bias decides", got)
	}
	near(b, "weights", get[float32](b, r.Weights, 1), 1)
}

func TestConvert(t *testing.T) {
	b := newBench(t)
	x := op.Convert{Out: put(b, make([]uint16, 3)...), In: put[float32](b, 1, -2.5, 1+0x1p-8), Count: 3, OutType: op.BF16, InType: op.F32}
	b.Convert(b.stream, x)
	if got, want := get[uint16](b, x.Out, 3), []uint16{0x3f80, 0xc020, 0x3f80}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %#x, want %#x", got, want)
	}
	x.InType = op.I64
	b.Convert(b.stream, x)
	if err := b.stream.Sync(); err == nil {
		t.Error("converting i64: got no error")
	}
}
