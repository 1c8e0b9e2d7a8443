package optest

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// mapper is a stream with a copy engine.
type mapper struct{ op.Stream }

func (mapper) TensorMap(t op.Tile) op.TensorMap { return op.TensorMap{uint64(t.Rows)} }

// A stream around another must not hide what that one can do: a kernel that reads by a descriptor of zeros ends the device.
func TestListenerPassesTensorMapsOn(t *testing.T) {
	var q op.Stream = &listener{Stream: mapper{}}
	if got := q.TensorMap(op.Tile{Rows: 7}); got[0] != 7 {
		t.Errorf("got %v, want the stream's own descriptor", got)
	}
}

func TestHostHasNoCopyEngine(t *testing.T) {
	s, err := host.New(0).Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	s.TensorMap(op.Tile{})
	if err := s.Sync(); err == nil {
		t.Error("want an error")
	}
}
