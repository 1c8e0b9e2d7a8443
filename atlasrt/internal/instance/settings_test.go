package instance

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

var write = flag.String("write", "", "folder to write the checkpoints of TestSettings into, for tools/testdata/settings.py")

// What settings mean is what transformers computes with them: testdata/settings.json has its logits for rows 4, 8 and 11, written by
// tools/testdata/settings.py. sameAs names a case whose logits must be equal; the others must differ from those of the first of
// their kind.
func TestSettings(t *testing.T) {
	text, err := os.ReadFile("testdata/settings.json")
	if err != nil && *write == "" {
		t.Fatal(err)
	}
	recorded := map[string][][]float32{}
	if err := json.Unmarshal(text, &recorded); err != nil && *write == "" {
		t.Fatal(err)
	}
	const moe = `"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16`
	cases := []struct{ name, config, sameAs, unlike string }{
		{"llama", `"model_type": "llama"`, "", ""},
		{"llama-window", `"model_type": "llama", "sliding_window": 4, "use_sliding_window": true, "max_window_layers": 0`, "llama", ""},
		{"llama-partial", `"model_type": "llama", "partial_rotary_factor": 0.5`, "", "llama"},
		{"llama-partial-yarn", `"model_type": "llama", "partial_rotary_factor": 0.5, "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16}`, "", "llama-partial"},
		{"llama-linear", `"model_type": "llama", "rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 10000}`, "", "llama"},
		{"mistral", `"model_type": "mistral", "sliding_window": null`, "llama", ""},
		{"mistral-default-window", `"model_type": "mistral"`, "llama", ""}, // 4096 is more than there is
		{"mistral-window", `"model_type": "mistral", "sliding_window": 4`, "", "mistral"},
		{"qwen2", `"model_type": "qwen2", "sliding_window": 4`, "", "llama"},
		{"qwen2-default-layers", `"model_type": "qwen2", "sliding_window": 4, "use_sliding_window": true`, "qwen2", ""},
		{"qwen2-one-layer", `"model_type": "qwen2", "sliding_window": 4, "use_sliding_window": true, "max_window_layers": 1`, "", "qwen2"},
		{"qwen2-layer-types", `"model_type": "qwen2", "sliding_window": 4, "use_sliding_window": true, "layer_types": ["full_attention", "sliding_attention"]`, "qwen2-one-layer", ""},
		{"qwen3", `"model_type": "qwen3", "head_dim": 8`, "", ""},
		{"qwen3-window", `"model_type": "qwen3", "head_dim": 8, "sliding_window": 4, "use_sliding_window": true, "max_window_layers": 0`, "", "qwen3"},
		{"qwen3-layer-types", `"model_type": "qwen3", "head_dim": 8, "sliding_window": 4, "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"]`, "", "qwen3-window"},
		{"qwen3-rotary-dim", `"model_type": "qwen3", "head_dim": 8, "rotary_dim": 4`, "", "qwen3"},
		{"qwen3-moe", moe, "", ""}, // norm_topk_prob is false where it is absent
		{"qwen3-moe-norm", moe + `, "norm_topk_prob": true`, "", "qwen3-moe"},
		{"qwen3-moe-window", moe + `, "sliding_window": 4, "use_sliding_window": true`, "", "qwen3-moe"},
	}
	const near, far = 2e-5, 2e-4
	computed := map[string][]float32{}
	for _, c := range cases {
		checkpoint, construct, counter, target := prepared(t, c.config)
		if *write != "" {
			if err := weights.Write(filepath.Join(*write, c.name), checkpoint, weights.Layout{ShardBytes: 1 << 30}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		all := logits(t, checkpoint, construct, counter, target)
		const vocab = 50
		for i, row := range []int{4, 8, 11} {
			computed[c.name] = append(computed[c.name], all[row*vocab:(row+1)*vocab]...)
			if d := golden.Worst(all[row*vocab:(row+1)*vocab], recorded[c.name][i]); d > near {
				t.Errorf("%s: row %d differs by %v from what transformers computed", c.name, row, d)
			}
		}
		if c.sameAs != "" {
			if d := golden.Worst(computed[c.name], computed[c.sameAs]); d != 0 {
				t.Errorf("%s differs from %s by %v, want the same", c.name, c.sameAs, d)
			}
		}
		if c.unlike != "" {
			if d := golden.Worst(computed[c.name], computed[c.unlike]); d < far {
				t.Errorf("%s differs from %s by %v only: the case shows nothing", c.name, c.unlike, d)
			}
		}
	}
}
