package load_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
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

func TestATruncatedFileIsNamed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	zeros := make([]float32, 128*256)
	made := newMemory(t, "{}", bf16("k.weight", zeros, 128, 256), bf16("q.weight", zeros, 128, 256))
	if err := weights.Write(folder, made, weights.Layout{ShardBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	c, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	files, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	if err := os.Truncate(files[0], 96<<10); err != nil {
		t.Fatal(err)
	}
	_, _, err = place(c, 1, 256, two(128, 128))
	if err == nil || !strings.Contains(err.Error(), "q.weight BF16 [128, 256]: a page of a mapped file could not be read: was the file truncated") {
		t.Errorf("got %v, want that a page of q.weight could not be read", err)
	}
}

// What nobody uses is an error, unless it belongs to a part that the model does without.
func TestAsidesMayStayUnused(t *testing.T) {
	set := oracle.New(op.F32)
	for _, asides := range [][]weights.Aside{nil, {{Prefix: "mtp."}}} {
		m := newMemory(t, `{}`, bf16("mtp.fc.weight", counting(4), 2, 2))
		d := host.New(0)
		stream, err := d.Stream(0)
		if err != nil {
			t.Fatal(err)
		}
		loader, err := load.NewLoader(t.Context(), m, d, stream, set, load.NewCounter(set, load.Stored(m, set)))
		if err != nil {
			t.Fatal(err)
		}
		loader.Asides = asides
		if err := loader.Finish(); (err == nil) != (asides != nil) || err != nil && !strings.Contains(err.Error(), "mtp.fc.weight was not used") {
			t.Errorf("asides %v: got %v", asides, err)
		}
	}
}
