package optest_test

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// rounding is the oracle with activations rounded, row by row, before they meet a matrix.
type rounding struct {
	*oracle.Set
	round func(row []float32)
}

func (s rounding) rows(pin *runtime.Pinner, p op.Ptr, rows, cols int32) op.Ptr {
	values := slices.Clone(floats(p, rows*cols))
	for row := range slices.Chunk(values, int(cols)) {
		s.round(row)
	}
	return oracle.Address(pin, values)
}

func (s rounding) Linear(q op.Stream, x op.Linear) {
	var pin runtime.Pinner
	defer pin.Unpin()
	x.In = s.rows(&pin, x.In, x.Rows, x.W.Cols)
	s.Set.Linear(q, x)
}

func (s rounding) Logits(q op.Stream, x op.Logits) {
	var pin runtime.Pinner
	defer pin.Unpin()
	x.In = s.rows(&pin, x.In, x.InRows, x.W.Cols)
	s.Set.Logits(q, x)
}

func (s rounding) ExpertUp(q op.Stream, x op.ExpertUp) {
	var pin runtime.Pinner
	defer pin.Unpin()
	x.In = s.rows(&pin, x.In, x.Rows, x.W.Cols)
	s.Set.ExpertUp(q, x)
}

func (s rounding) ExpertDown(q op.Stream, x op.ExpertDown) {
	var pin runtime.Pinner
	defer pin.Unpin()
	x.In = s.rows(&pin, x.In, x.Rows*x.TopK, x.W.Cols)
	s.Set.ExpertDown(q, x)
}

// toInt8 rounds groups of n elements to 127ths of their largest.
func toInt8(row []float32, n int) {
	for group := range slices.Chunk(row, n) {
		var largest float64
		for _, v := range group {
			largest = max(largest, math.Abs(float64(v)))
		}
		if largest == 0 {
			continue
		}
		for i, v := range group {
			group[i] = float32(math.Round(float64(v)/largest*127) * largest / 127)
		}
	}
}

// toInt8WithRests is toInt8 of 32 elements, but 254 times finer where one is larger than √12 root mean squares of the row.
func toInt8WithRests(row []float32) {
	sum := 0.0
	for _, v := range row {
		sum += float64(v) * float64(v)
	}
	limit := math.Sqrt(12 * sum / float64(len(row)))
	for group := range slices.Chunk(row, 32) {
		if most := slices.MaxFunc(group, func(a, b float32) int { return cmp.Compare(math.Abs(float64(a)), math.Abs(float64(b))) }); math.Abs(float64(most)) > limit {
			scale := math.Abs(float64(most)) / (127 * 254)
			for i, v := range group {
				group[i] = float32(math.Round(float64(v)/scale) * scale)
			}
		} else {
			toInt8(group, 32)
		}
	}
}

func toBF16(row []float32) {
	for i, v := range row {
		var b [2]byte
		oracle.Encode(b[:], op.BF16, []float64{float64(v)})
		row[i] = math.Float32frombits(uint32(b[0])<<16 | uint32(b[1])<<24)
	}
}

// What honest kernels round passes where the target says so, and not where it claims to be exact.
func TestTolerancesFitHonestKernels(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		round   func(row []float32)
		schemes []string
		fails   string // cases for which it is not honest
	}{
		{"int8 with rests", toInt8WithRests, []string{"q8_0", "q4_0", "q4_1", "q5_0", "q4_k", "q6_k", "nvfp4"}, ""},
		{"int8 by block", func(row []float32) { toInt8(row, 32) }, []string{"q8_0", "q4_0", "q4_1", "q5_0", "q4_k", "q6_k", "nvfp4"}, "peaked"},
		{"int8 by row", func(row []float32) { toInt8(row, len(row)) }, []string{"q8_0", "q4_0", "q4_1"}, "uneven peaked"},
		{"bf16", toBF16, []string{"bf16", "q8_0", "q4_0", "q4_1", "f8", "nvfp4"}, "peaked"},
	}
	for _, c := range cases {
		for _, scheme := range c.schemes {
			exact := target(rounding{oracle.New(op.F32), c.round}, op.F32)
			honest := exact
			honest.Exact = false
			reports, err := optest.Run([]optest.Target{honest, exact}, optest.Options{
				Ops: []string{"Linear", "Logits", "ExpertUp", "ExpertDown"}, Match: scheme, Seed: 1, Short: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range reports[0].Results {
				if fails := slices.ContainsFunc(strings.Fields(c.fails), func(word string) bool { return strings.Contains(r.Case, word) }); (r.Status == optest.Pass) == fails {
					t.Errorf("%s: %s", c.name, r)
				}
			}
			for _, r := range reports[1].Results {
				near := strings.Contains(r.Case, "peaked") // blocks with rests are nearly as close as sums in f32
				if r.Status == optest.Pass && !near && !strings.HasPrefix(r.Case, "rows alone") {
					t.Errorf("%s, claimed to be exact: %s", c.name, r)
				}
			}
		}
	}
}

// narrowed is the oracle with weights of GGUF's blocks rounded to bf16.
type narrowed struct{ *oracle.Set }

// round is w with weights of bf16.
func (s narrowed) round(pin *runtime.Pinner, w op.Weight) op.Weight {
	count, cols, bytes := int(w.Count*w.Rows), int(w.Cols), int(w.Scheme.RawBytes(1, int64(w.Cols)))
	weights, row, rounded := make([]uint16, 0, count*cols), make([]float64, cols), make([]float32, cols)
	for i := range count {
		at := w.Data + op.Ptr(int64(i/int(w.Rows))*w.Stride) + op.Ptr(i%int(w.Rows)*bytes)
		oracle.Dequantise(row, w.Scheme, unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), bytes))
		for k, v := range row {
			rounded[k] = float32(v)
		}
		toBF16(rounded)
		for _, v := range rounded {
			weights = append(weights, uint16(math.Float32bits(v)>>16))
		}
	}
	w.Data, w.Stride, w.Scheme = oracle.Address(pin, weights), int64(w.Rows)*int64(cols)*2, op.SchemeBF16
	return w
}

func (s narrowed) Linear(q op.Stream, x op.Linear) {
	var pin runtime.Pinner
	defer pin.Unpin()
	x.W = s.round(&pin, x.W)
	s.Set.Linear(q, x)
}

func (s narrowed) ExpertUp(q op.Stream, x op.ExpertUp) {
	var pin runtime.Pinner
	defer pin.Unpin()
	x.W = s.round(&pin, x.W)
	s.Set.ExpertUp(q, x)
}

// narrowedError is by how much weights that are rounded to bf16 change the results of a case.
func narrowedError(t *testing.T, operation, match string, seed uint64) float64 {
	t.Helper()
	judged := target(narrowed{oracle.New(op.BF16)}, op.BF16)
	judged.Exact = false
	report := run(t, judged, optest.Options{Ops: []string{operation}, Match: match, Seed: seed})
	if len(report.Results) != 1 || report.Results[0].Status != optest.Pass {
		t.Errorf("want one case that passes: %v", report.Results)
		return 0
	}
	return report.Results[0].Error
}

// With this seed one of a row's 32 outputs has most of its error, since the other half that it is multiplied by is large.
func TestErrorsOfProductsScatterFurther(t *testing.T) {
	if e := narrowedError(t, "ExpertUp", "q4_1 16×32×128 rows 150 top 2, few experts", 2384683487407478569); e < 0.004 {
		t.Errorf("it passes with an error of %.2g: want one that is near its limit", e)
	}
}

// Factors of rows that are far from one would let one of a row's 24 outputs have most of its error, as with the first of these seeds.
func TestFactorsLeaveErrorsAlike(t *testing.T) {
	t.Parallel()
	worst := 0.0
	for _, seed := range []uint64{17392106441434622087, 1, 2, 3} {
		worst = max(worst, narrowedError(t, "Linear", "q8_0 24×8192 rows 17 scale", seed))
	}
	t.Logf("worst error %.2g", worst)
}

// narrow sums products in float32, one after the other.
type narrow struct{ *oracle.Set }

func (s narrow) Linear(q op.Stream, x op.Linear) {
	if x.W.Scheme != op.SchemeBF16 || x.Bias != 0 || x.W.Scale != 0 {
		s.Set.Linear(q, x)
		return
	}
	weights := unsafe.Slice((*uint16)(*(*unsafe.Pointer)(unsafe.Pointer(&x.W.Data))), x.W.Rows*x.W.Cols)
	in, out := floats(x.In, x.Rows*x.W.Cols), floats(x.Out, (x.Rows-1)*x.OutPitch+x.W.Rows)
	for r := range int(x.Rows) {
		for n := range int(x.W.Rows) {
			var sum float32
			for k := range int(x.W.Cols) {
				sum += float32(in[r*int(x.W.Cols)+k] * math.Float32frombits(uint32(weights[n*int(x.W.Cols)+k])<<16))
			}
			out[r*int(x.OutPitch)+n] = sum
		}
	}
}

func TestSumsInF32AreExactEnough(t *testing.T) {
	worst := 0.0
	for _, match := range []string{"bf16 24×8192", "bf16 97×96", "bf16 16×1 "} {
		for _, r := range run(t, target(narrow{oracle.New(op.F32)}, op.F32), optest.Options{Ops: []string{"Linear"}, Match: match}).Results {
			if worst = max(worst, r.Error); r.Status != optest.Pass {
				t.Error(r)
			}
		}
	}
	t.Logf("worst error %.2g", worst)
}
