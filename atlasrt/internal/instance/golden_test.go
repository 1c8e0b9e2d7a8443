package instance

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/internal/testdata"
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

// golden is what HuggingFace transformers computed for a checkpoint.
type golden struct {
	checkpoint     string // the folder that holds it
	tokens, greedy []int32
	logits         []float32 // of the last positions, or of all
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	folder := testdata.Shared(t, "golden/"+name)
	path := folder + "/golden.safetensors"
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []uint32 {
		tensor, ok := f.Tensor(name)
		if !ok {
			t.Fatalf("%s has no %s", path, name)
		}
		v := make([]uint32, len(tensor.Data)/4)
		for i := range v {
			v[i] = binary.LittleEndian.Uint32(tensor.Data[4*i:])
		}
		return v
	}
	g := golden{checkpoint: folder}
	last := "logits"
	if short, long := strings.CutSuffix(name, "-long"); long {
		g.checkpoint, last = testdata.Shared(t, "golden/"+short), "logits_last"
	}
	for _, v := range read("tokens") {
		g.tokens = append(g.tokens, int32(v))
	}
	for _, v := range read("greedy") {
		g.greedy = append(g.greedy, int32(v))
	}
	for _, v := range read(last) {
		g.logits = append(g.logits, math.Float32frombits(v))
	}
	return g
}

// The oracle running a family's forward pass must give what transformers gives: this judges the families.
func TestFamiliesAgreeWithTransformers(t *testing.T) {
	for _, name := range []string{
		"llama", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_next-mtp", "qwen3_next-nvfp4-modelopt", "qwen3_5", "qwen3_5-long", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe-mtp",
		"qwen3_5_moe-fp8-block", "qwen3_5_moe-nvfp4-ct",
	} {
		t.Run(name, func(t *testing.T) {
			want := readGolden(t, name)
			d := host.New(0)
			set := oracle.New(op.F32)
			m := direct(t, d, set, loaded(t, want.checkpoint, d, set, model.Limits{Rows: 7, Activations: op.F32}), 7, len(want.tokens)+len(want.greedy))
			logits, err := m.Logits(want.tokens, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			logits = logits[len(logits)-len(want.logits):]
			worst := worstDifference(logits, want.logits)
			t.Logf("max |Δlogit| %.1e over %d logits", worst, len(logits))
			if !(worst <= 2e-3) {
				t.Errorf("max |Δlogit| is %v, want at most 2e-3", worst)
			}
			greedy, err := m.Greedy(want.tokens, len(want.greedy))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(greedy, want.greedy) {
				t.Errorf("greedy continuation\n got %v\nwant %v", greedy, want.greedy)
			}
		})
	}
}
