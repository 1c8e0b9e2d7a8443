package instance

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// loaded places a checkpoint for tests.
func loaded(t *testing.T, path string, d device.Device, set bundle.Set, limits model.Limits) model.Model {
	t.Helper()
	c, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := networkOf(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	counter := load.NewCounter(set, load.Stored(c, set))
	n.build(set, counter, limits)
	if err := counter.Err(); err != nil {
		t.Fatal(err)
	}
	if err := weights.Check(c, counter.Wants); err != nil {
		t.Fatal(err)
	}
	stream, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	loader, err := load.NewLoader(t.Context(), c, d, stream, set, counter)
	if err != nil {
		t.Fatal(err)
	}
	loader.Asides = asides(c.Config().StringOr("model_type", ""))
	m := n.build(set, loader, limits)
	if err := loader.Finish(); err != nil {
		t.Fatal(err)
	}
	return m
}

// direct runs a model that was loaded for rows rows.
func direct(t *testing.T, d device.Device, set bundle.Set, m model.Model, rows, context int) *engine.Direct {
	t.Helper()
	e, err := engine.NewDirect(engine.Config{
		Device: d, Set: set, Model: m, ScratchBytes: 1 << 20, KVType: op.F32, BlockSize: 16, Blocks: context/16 + 1,
		MaxBatchTokens: rows, MaxContext: context, MaxSequences: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The oracle running a family's forward pass must give what transformers gives: this judges the families.
func TestFamiliesAgreeWithTransformers(t *testing.T) {
	for _, name := range []string{
		"llama", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_next-mtp", "qwen3_next-nvfp4-modelopt", "qwen3_5", "qwen3_5-long", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe-mtp",
		"qwen3_5_moe-fp8-block", "qwen3_5_moe-nvfp4-ct",
	} {
		t.Run(name, func(t *testing.T) {
			want := golden.Read(t, name)
			d := host.New(0)
			set := oracle.New(op.F32)
			m := direct(t, d, set, loaded(t, want.Checkpoint, d, set, model.Limits{Rows: 7, Activations: op.F32}), 7, len(want.Tokens)+len(want.Greedy))
			logits, err := m.Logits(want.Tokens, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			logits = logits[len(logits)-len(want.Logits):]
			worst := golden.Worst(logits, want.Logits)
			t.Logf("max |Δlogit| %.1e over %d logits", worst, len(logits))
			if !(worst <= 2e-3) {
				t.Errorf("max |Δlogit| is %v, want at most 2e-3", worst)
			}
			greedy, err := m.Greedy(want.Tokens, len(want.Greedy))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(greedy, want.Greedy) {
				t.Errorf("greedy continuation\n got %v\nwant %v", greedy, want.Greedy)
			}
		})
	}
}
