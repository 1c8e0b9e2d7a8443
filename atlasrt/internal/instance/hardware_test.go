package instance

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Hardware that this machine cannot run is asked, and not run.
func TestAsk(t *testing.T) {
	has := map[string]bool{}
	h := Hardware{Name: "abacus", Exact: true, Bundles: []*bundle.Bundle{{
		Hardware: "abacus", Device: "beads", Activations: op.F32, Needs: []string{"frame"}, Features: []string{"ivory", "wood"}, Kernels: []bundle.Kernel{{Name: "add"}},
		New: func(kernels []op.Kernel, on func(string) bool) bundle.Set {
			for _, name := range []string{"frame", "ivory", "wood", "exact", "amx"} {
				has[name] = on(name)
			}
			return &ops.Tap{Set: oracle.New(op.F32), Each: func(op.Stream, any) bool { return true }}
		},
	}}}
	if _, err := h.Ask("steel"); err == nil || !strings.Contains(err.Error(), `no kernel of abacus asks for the processor feature "steel"`) {
		t.Errorf("an unknown feature: got %v", err)
	}
	target, err := h.Ask("wood")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"frame": true, "ivory": true, "wood": false, "exact": true, "amx": false} {
		if has[name] != want {
			t.Errorf("%s is on: got %v, want %v", name, has[name], want)
		}
	}
	if got := target.Points()["add"]; got != 1 {
		t.Errorf("kernel add: got %d, want 1", got)
	}
	config, err := weights.ParseConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
		"num_key_value_heads": 1, "intermediate_size": 96, "vocab_size": 300, "max_position_embeddings": 128, "rms_norm_eps": 1e-5}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dummy(target, config, dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, memory := range []int64{0, 1 << 30} {
		p, err := Prepare(target, c, Sizes{KVType: op.F32, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := p.Plan(); (err == nil) != (memory > 0) || m.Limit != memory {
			t.Errorf("%d bytes: got a limit of %d, error %v", memory, m.Limit, err)
		}
		if _, err := p.Load(t.Context()); err == nil {
			t.Error("a model was loaded without a device")
		}
	}
}
