package load_test

import (
	"context"
	"errors"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

func TestLoadingStopsWhenItIsTold(t *testing.T) {
	m := newMemory(t, "{}", bf16("w", make([]float32, 64), 8, 8))
	set, d := oracle.New(op.F32), host.New(0)
	counter := load.NewCounter(set, load.Stored(m, set))
	parts := func(int32) []model.Part { return []model.Part{{Name: "w", Rows: 8}} }
	counter.Experts(1, 8, parts)
	stream, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	loader, err := load.NewLoader(ctx, m, d, stream, set, counter)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	loader.Experts(1, 8, parts)
	if err := loader.Finish(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if err := loader.Close(); err != nil {
		t.Error(err)
	}
}
