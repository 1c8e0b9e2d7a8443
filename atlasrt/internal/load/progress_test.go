package load_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
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

// writes counts the batches that a stream copies.
type writes struct {
	device.Stream
	n *int
}

func (w writes) WriteAll(pieces []device.Piece) {
	*w.n++
	w.Stream.WriteAll(pieces)
}

// Where there are two streams, batches take turns.
func TestBatchesTakeTurns(t *testing.T) {
	set, d := oracle.New(op.F32), host.New(0)
	var tensors []weights.Tensor
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		tensors = append(tensors, bf16(name, slices.Repeat([]float32{float32(len(tensors) + 1)}, 64), 8, 8))
	}
	m := newMemory(t, "{}", tensors...)
	read := func(s model.Source) (all []op.Weight) {
		for _, x := range tensors {
			all = append(all, s.Matrix(8, model.Part{Name: x.Name, Rows: 8}))
		}
		return all
	}
	counter := load.NewCounter(set, load.Stored(m, set))
	read(counter)
	var counts [2]int
	var streams [2]device.Stream
	for i := range streams {
		s, err := d.Stream(0)
		if err != nil {
			t.Fatal(err)
		}
		streams[i] = writes{s, &counts[i]}
	}
	loader, err := load.NewLoader(t.Context(), m, d, streams[0], set, counter)
	if err != nil {
		t.Fatal(err)
	}
	if err := loader.Overlap(streams[1]); err != nil {
		t.Fatal(err)
	}
	all := read(loader)
	if err := loader.Finish(); err != nil {
		t.Fatal(err)
	}
	for i, w := range all {
		data := make([]byte, 128)
		if err := d.CopyOut(data, w.Data); err != nil || !bytes.Equal(data, tensors[i].Data) {
			t.Errorf("matrix %s came back changed (%v)", tensors[i].Name, err)
		}
	}
	if counts != [2]int{2, 3} {
		t.Errorf("the streams copied %v batches, want 2 and 3", counts)
	}
}
