package load_test

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// Progress never goes back, comes for every matrix, and ends with all bytes, a vector at the end included.
func TestProgress(t *testing.T) {
	m := newMemory(t, "{}", bf16("a", make([]float32, 64), 8, 8), bf16("b", make([]float32, 128), 16, 8), bf16("norm", make([]float32, 8), 8))
	set, d := oracle.New(op.F32), host.New(0)
	read := func(s model.Source) {
		s.Matrix(8, model.Part{Name: "a", Rows: 8})
		s.Matrix(8, model.Part{Name: "b", Rows: 16})
		s.Vector(model.Part{Name: "norm", Rows: 8})
	}
	counter := load.NewCounter(set, load.Stored(m, set))
	read(counter)
	stream, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	loader, err := load.NewLoader(t.Context(), m, d, stream, set, counter)
	if err != nil {
		t.Fatal(err)
	}
	var seen []int64
	loader.Progress = func(done, total int64) {
		if total != counter.Weights || len(seen) > 0 && done < seen[len(seen)-1] {
			t.Errorf("%d of %d after %v, want no less, of %d", done, total, seen, counter.Weights)
		}
		seen = append(seen, done)
	}
	read(loader)
	if err := loader.Finish(); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 3 || seen[0] <= 0 || seen[1] >= counter.Weights || seen[2] != counter.Weights {
		t.Errorf("got %v, want three steps up to %d", seen, counter.Weights)
	}
	if err := loader.Close(); err != nil {
		t.Error(err)
	}
}
