package oracle

import (
	"bytes"
	"math"
	"runtime"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// A watched buffer tells what was stored before rounding; a buffer of another type at the same place tells nothing.
func TestWatchedResultsAreUnrounded(t *testing.T) {
	const rows, cols = 3, 40
	in, scale, out := make([]byte, 2*rows*cols), make([]byte, 4*cols), make([]byte, 2*rows*cols)
	values := make([]float64, rows*cols)
	for i := range values {
		values[i] = math.Sin(float64(i + 1))
	}
	Encode(in, op.BF16, values)
	Encode(scale, op.F32, values[:cols])
	var pin runtime.Pinner
	defer pin.Unpin()
	x := op.RMSNorm{Out: Address(&pin, out), In: Address(&pin, in), Scale: Address(&pin, scale), Rows: rows, Cols: cols, Eps: 1e-6}
	u, other := NewUnrounded(x.Out, op.BF16, rows*cols), NewUnrounded(x.Out, op.F32, rows*cols)
	New(op.BF16).Watching(other, u).RMSNorm(nil, x)
	rounded, stored, same := make([]byte, len(out)), make([]float64, rows*cols), 0
	Encode(rounded, op.BF16, u.Values)
	if !bytes.Equal(rounded, out) {
		t.Error("rounding what was watched gives other bits than what was stored")
	}
	Decode(stored, op.BF16, out)
	for i := range stored {
		if stored[i] == u.Values[i] {
			same++
		}
		if !math.IsNaN(other.Values[i]) {
			t.Fatalf("element %d of a buffer of another type is %v, want nothing", i, other.Values[i])
		}
	}
	if same > rows*cols/4 {
		t.Errorf("%d of %d results are the same before and after rounding", same, rows*cols)
	}
}
