package cuda

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestTensorMapsAreMadeOnce(t *testing.T) {
	b, f := start(t)
	tile := op.Tile{Data: 4096, Rows: 300, Cols: 96, Pitch: 128, BoxRows: 64, BoxCols: 64}
	want := op.TensorMap{tensorBF16, 4096, 96, 300, 256, 64, 64, 1, 1, interleaveNone, swizzle128, promoteL2256, outsideIsZero}
	for range 2 {
		if got := b.stream.TensorMap(tile); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	other := tile
	other.Rows = 301
	b.stream.TensorMap(other)
	if n := f.calls("cuTensorMapEncodeTiled"); n != 2 {
		t.Errorf("two tiles took %d calls", n)
	}
	few := tile
	few.Rows = 24 // a box has no rows that the matrix has not
	want[3], want[6] = 24, 24
	if got := b.stream.TensorMap(few); got != want {
		t.Errorf("of few rows: got %v, want %v", got, want)
	}
	other.Pitch = 97
	b.stream.TensorMap(other)
	if err := b.stream.Sync(); err == nil || !strings.Contains(err.Error(), "describe a matrix of 301×96 elements, 97 apart") {
		t.Errorf("got error %v", err)
	}
}
