package instance

import (
	"errors"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
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

// Where memory that was found is too little, the error says where it comes from. One about another size says nothing of it.
func TestPlanSaysWhereMemoryComesFrom(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
		"num_key_value_heads": 1, "intermediate_size": 96, "vocab_size": 300, "max_position_embeddings": 128}`))
	if err != nil {
		t.Fatal(err)
	}
	unlaunched := &ops.Tap{Set: oracle.New(op.F32), Each: func(op.Stream, any) bool { return true }}
	target := &Target{Device: host.New(0), Set: unlaunched, Bundle: &bundle.Bundle{Activations: op.F32}}
	c, err := Dummy(target, config, dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		sizes Sizes
		want  string
	}{
		{Sizes{KVType: op.F32, Memory: 1}, "may be used"},
		{Sizes{KVType: op.F32, Memory: 1 << 30, MaxSequences: 600}, "--max-sequences is 600"},
	} {
		p, err := Prepare(target, c, test.sizes)
		if err != nil {
			t.Fatal(err)
		}
		p.Bound = "a limit of the moon"
		_, err = p.Plan()
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "moon") != errors.Is(err, engine.ErrNoRoom) {
			t.Errorf("got %v, want %q", err, test.want)
		}
		if errors.Is(err, engine.ErrNoRoom) != (test.sizes.Memory == 1) {
			t.Errorf("%v: lacks memory: %v", err, errors.Is(err, engine.ErrNoRoom))
		}
	}
}
