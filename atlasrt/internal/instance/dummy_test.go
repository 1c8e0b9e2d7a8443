package instance

import (
	"math"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// deep is a model of as many layers as a large one has, with a dense network first and experts after.
const deep = `{"model_type": "qwen3_moe", "hidden_size": 256, "num_hidden_layers": 48, "num_attention_heads": 8, "num_key_value_heads": 2,
	"head_dim": 32, "intermediate_size": 256, "vocab_size": 50, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "num_experts": 4,
	"num_experts_per_tok": 2, "moe_intermediate_size": 256, "norm_topk_prob": true, "mlp_only_layers": [0]}`

// Made-up weights of every scheme give logits of an ordinary size after many layers, where activations are rounded too.
func TestDummyModelsStayFinite(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(deep))
	if err != nil {
		t.Fatal(err)
	}
	n, err := networkOf(config)
	if err != nil {
		t.Fatal(err)
	}
	limits := model.Limits{Rows: 8, Activations: op.BF16}
	for _, scheme := range []op.Scheme{op.SchemeBF16, op.SchemeQ4_1, op.SchemeF8, op.SchemeF8Block, op.SchemeNVFP4, op.SchemeQ5_0, op.SchemeQ4_K, op.SchemeQ6_K} {
		target := &Target{Device: host.New(0), Set: oracle.New(op.BF16), Bundle: &bundle.Bundle{Activations: op.BF16}}
		checkpoint, err := Dummy(target, config, dummy.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		counter := load.NewCounter(target.Set, load.Stored(checkpoint, target.Set))
		n.build(target.Set, counter, limits)
		if err := counter.Err(); err != nil {
			t.Fatal(err)
		}
		if err := weights.Check(checkpoint, counter.Wants); err != nil {
			t.Fatal(err)
		}
		stream, err := target.Device.Stream(0)
		if err != nil {
			t.Fatal(err)
		}
		loader, err := load.NewLoader(t.Context(), checkpoint, target.Device, stream, target.Set, counter)
		if err != nil {
			t.Fatal(err)
		}
		m := n.build(target.Set, loader, limits)
		if err := loader.Finish(); err != nil {
			t.Fatal(err)
		}
		logits, err := direct(t, target.Device, target.Set, m, 8, 32).Logits([]int32{3, 14, 15, 9, 26, 5, 35, 8, 9, 7}, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, v := range logits {
			sum += float64(v) * float64(v)
		}
		if size := math.Sqrt(sum / float64(len(logits))); !(size > 0.1 && size < 10) {
			t.Errorf("%s: logits are %v in the mean, want about 1", scheme, size)
		}
	}
}
