package optest_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// tensorCores multiplies e4m3 as an H100's tensor cores do: an instruction adds 32 products and the sum before them, all of
// which lose what is below the thirteenth bit behind the first one of the largest. After so many columns the sum is added in full.
type tensorCores struct {
	*oracle.Set
	columns int
}

func (s tensorCores) Linear(q op.Stream, x op.Linear) {
	q.Launch(7, op.Grid{X: 1, Y: 1, Z: 1})
	cols, outputs := int(x.W.Cols), int(x.W.Rows)
	codes, scales := at[byte](x.W.Data, outputs*cols), at[float32](x.W.Scale, outputs)
	weights := make([]float64, outputs*cols)
	oracle.Decode(weights, op.F8E4M3, codes)
	row, products := make([]float64, cols), make([]float64, 0, 33)
	for r := range int(x.Rows) {
		oracle.Decode(row, op.BF16, at[byte](x.In, 2*(r+1)*cols)[2*r*cols:])
		oracle.RoundE4M3(row, cols)
		for n := range outputs {
			total, sum := 0.0, 0.0
			for k := 0; k < cols; k += 32 {
				products = append(products[:0], sum)
				for i, a := range row[k : k+32] {
					products = append(products, a*weights[n*cols+k+i])
				}
				if sum = addTruncated(products); (k+32)%s.columns == 0 || k+32 == cols {
					total, sum = total+sum, 0
				}
			}
			oracle.Encode(at[byte](x.Out, 2*(r*int(x.OutPitch)+n+1))[2*(r*int(x.OutPitch)+n):], op.BF16, []float64{total * float64(scales[n])})
		}
	}
}

func addTruncated(list []float64) (sum float64) {
	largest := 0.0
	for _, x := range list {
		largest = max(largest, math.Abs(x))
	}
	_, exponent := math.Frexp(largest)
	unit := math.Ldexp(1, exponent-1-13)
	for _, x := range list {
		sum += math.Trunc(x/unit) * unit
	}
	return sum
}

// at is what lies at an address.
func at[T any](p op.Ptr, n int) []T {
	return unsafe.Slice((*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

// What tensor cores lose of sums of 256 columns passes, and of more does not always: so a kernel may sum as many before it adds in full.
func TestTensorCoresMaySum256Columns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		columns int
		passes  bool
	}{{128, true}, {256, true}, {512, false}} {
		of := target(tensorCores{oracle.New(op.BF16), c.columns}, op.BF16)
		of.Device, of.Rounds, of.Together, of.Exact = launching{of.Device}, map[op.Kernel]string{7: "e4m3xrow"}, true, false
		report := run(t, of, optest.Options{Ops: []string{"Linear"}, Match: "f8 40×640 rows 2051", Seed: 7529867449013541037})
		for _, r := range report.Results {
			if passes := r.Status == optest.Pass; passes != c.passes {
				t.Errorf("sums of %d columns, want a pass: %t, got %s", c.columns, c.passes, r)
			}
		}
		if len(report.Results) != 1 {
			t.Errorf("%d cases, want one", len(report.Results))
		}
	}
}
