package weights

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// openedKeys reads the settings of a file of an architecture with llamaKeys and more keys; ARCH stands for its name.
func openedKeys(t *testing.T, arch string, more map[string]any) (*Config, error) {
	t.Helper()
	keys := map[string]any{}
	for key, value := range with(llamaKeys, more) {
		if rest, ok := strings.CutPrefix(key, "llama."); ok {
			key = arch + "." + rest
		} else if rest, ok := strings.CutPrefix(key, "ARCH."); ok {
			key = arch + "." + rest
		}
		keys[key] = value
	}
	keys["general.architecture"] = arch
	c, err := Open(writeGGUF(t, keys, embedding))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	return c.Config(), nil
}

func TestGGUFRope(t *testing.T) {
	const yarn = `{"beta_fast":32,"beta_slow":1,"extrapolation_factor":1,"factor":4,"original_max_position_embeddings":128,"rope_type":"yarn"}`
	yarnBut := func(old, new string) string { return strings.Replace(yarn, old, new, 1) }
	attention := func(factor string) string { return `{"attention_factor":` + factor + "," + yarn[1:] }
	cases := []struct {
		name    string
		keys    map[string]any
		want    string // rope_scaling
		assumed string
	}{
		{"nothing", nil, "null", ""},
		{"old key", map[string]any{"rope.scale_linear": float32(4)}, `{"factor":4,"rope_type":"linear"}`, ""},
		{"old key beside the new", map[string]any{"rope.scale_linear": float32(4), "rope.scaling.factor": float32(2)}, `{"factor":2,"rope_type":"linear"}`, ""},
		{"old key with a type", map[string]any{"rope.scale_linear": float32(4), "rope.scaling.type": "yarn"}, yarn, ""},
		{"factor without type", map[string]any{"rope.scaling.factor": float32(4)}, `{"factor":4,"rope_type":"linear"}`, ""},
		{"a whole number", map[string]any{"rope.scaling.factor": 4}, `{"factor":4,"rope_type":"linear"}`, ""},
		{"linear", map[string]any{"rope.scaling.type": "linear", "rope.scaling.factor": float32(0.5)}, `{"factor":0.5,"rope_type":"linear"}`, ""},
		{"factor 0", map[string]any{"rope.scaling.type": "linear", "rope.scaling.factor": float32(0)}, "null", ""},
		{"factor 1", map[string]any{"rope.scaling.type": "linear", "rope.scaling.factor": float32(1)}, "null", ""},
		{"linear without factor", map[string]any{"rope.scaling.type": "linear"}, "null", ""},
		{"none", map[string]any{"rope.scaling.type": "none", "rope.scaling.factor": float32(4)}, "null", ""},
		{"finetuned", map[string]any{"rope.scaling.factor": float32(4), "rope.scaling.finetuned": true}, `{"factor":4,"rope_type":"linear"}`, ""},
		{"linear with a magnitude", map[string]any{"rope.scaling.factor": float32(4), "rope.scaling.attn_factor": float32(1.5)},
			`{"attention_factor":1.5,` + yarnBut(`"extrapolation_factor":1`, `"extrapolation_factor":0`)[1:], ""},
		{"yarn", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4)}, yarn, ""},
		{"yarn without factor", map[string]any{"rope.scaling.type": "yarn"}, yarnBut(`"factor":4`, `"factor":1`), "yarn without a factor"},
		{"yarn original", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.original_context_length": 32}, yarnBut("128", "32"), ""},
		{"yarn betas", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_beta_fast": float32(8), "rope.scaling.yarn_beta_slow": 2},
			`{"beta_fast":8,"beta_slow":2,` + yarn[len(`{"beta_fast":32,"beta_slow":1,`):], ""},
		{"yarn extrapolation", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_ext_factor": float32(0.5)},
			yarnBut(`"extrapolation_factor":1`, `"extrapolation_factor":0.5`), ""},
		{"yarn without extrapolation", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_ext_factor": float32(0)}, `{"factor":4,"rope_type":"linear"}`, ""},
		{"extrapolation unset", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_ext_factor": float32(-1)}, yarn, ""},
		{"extrapolation makes yarn", map[string]any{"rope.scaling.factor": float32(4), "rope.scaling.yarn_ext_factor": float32(1)}, yarn, ""},
		{"magnitude of 1 more", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.attn_factor": float32(1)}, yarn, ""},
		{"magnitude of 2 more", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.attn_factor": float32(2)}, attention("2.277258872223978"), ""},
		{"whole magnitude as usual", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_attn_factor": float32(1.1386294)}, yarn, ""},
		{"whole magnitude", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_attn_factor": float32(1)}, attention("1"), "yarn_attn_factor, 1, is taken"},
		{"logarithm", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_log_multiplier": float32(1)}, attention("1"), ""},
		{"no logarithm", map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.yarn_log_multiplier": float32(0)}, yarn, ""},
	}
	for _, c := range cases {
		keys := map[string]any{}
		for key, value := range c.keys {
			keys["ARCH."+key] = value
		}
		config, err := openedKeys(t, "llama", keys)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := json.Marshal(config.values["rope_scaling"])
		if err != nil || string(got) != c.want {
			t.Errorf("%s: rope_scaling %s, want %s", c.name, got, c.want)
		}
		if assumed := strings.Join(config.Assumed(), "; "); c.assumed == "" && assumed != "" || !strings.Contains(assumed, c.assumed) {
			t.Errorf("%s: assumed %q, want %q", c.name, assumed, c.assumed)
		}
	}
}

func TestGGUFPartOfAHead(t *testing.T) {
	half := map[string]any{"ARCH.rope.dimension_count": 2, "ARCH.attention.key_length": 4}
	for _, arch := range []string{"llama", "mistral"} {
		if _, err := openedKeys(t, arch, half); !matches(err, arch+".rope.dimension_count is 2, and heads have 4") {
			t.Errorf("%s: %v, want a refusal", arch, err)
		}
	}
	for _, arch := range []string{"qwen2", "qwen3"} {
		config, err := openedKeys(t, arch, half)
		if err != nil || config.Int("rotary_dim") != 2 {
			t.Errorf("%s: %v, want 2 elements that turn", arch, err)
		}
	}
	if config, err := openedKeys(t, "llama", map[string]any{"ARCH.rope.dimension_count": 4}); err != nil || config.Has("rotary_dim") {
		t.Errorf("whole heads: %v", err)
	}
}

func TestGGUFWindows(t *testing.T) {
	cases := []struct{ arch, window, unread string }{
		{"llama", "null", "[ARCH.attention.sliding_window]"},
		{"qwen2", "null", "[ARCH.attention.sliding_window]"},
		{"qwen3", "null", "[ARCH.attention.sliding_window]"},
		{"mistral", "8", "[]"},
	}
	for _, c := range cases {
		config, err := openedKeys(t, c.arch, map[string]any{"ARCH.attention.sliding_window": 8})
		if err != nil {
			t.Errorf("%s: %v", c.arch, err)
			continue
		}
		unread := strings.ReplaceAll(fmt.Sprint(config.Unread()), c.arch+".", "ARCH.")
		if window := show(config.values["sliding_window"]); window != c.window || unread != c.unread {
			t.Errorf("%s: window %s, unread %s; want %s, %s", c.arch, window, unread, c.window, c.unread)
		}
	}
	if config, err := openedKeys(t, "mistral", nil); err != nil || show(config.values["sliding_window"]) != "null" {
		t.Errorf("mistral without the key: %v, want no window", err)
	}
}

func TestGGUFUnservedKeysAreRefused(t *testing.T) {
	cases := []struct {
		key   string
		value any
		want  string
	}{
		{"attn_logit_softcapping", float32(50), "attn_logit_softcapping is 50"},
		{"attn_logit_softcapping", float32(0), ""},
		{"final_logit_softcapping", float32(30), "final_logit_softcapping is 30"},
		{"logit_scale", float32(1), ""},
		{"logit_scale", float32(0.25), "logit_scale is 0.25"},
		{"residual_scale", float32(0.5), "residual_scale"},
		{"embedding_scale", 12, "embedding_scale is 12"},
		{"attention.scale", float32(0.5), ""}, // heads of 4
		{"attention.scale", float32(0.25), "attention.scale is 0.25"},
		{"attention.causal", true, ""},
		{"attention.causal", false, "attention.causal is false"},
		{"attention.clamp_kqv", float32(8), "clamp_kqv"},
		{"use_parallel_residual", true, "use_parallel_residual is 1"},
		{"use_parallel_residual", false, ""},
		{"pooling_type", 0, ""},
		{"pooling_type", 3, "pooling_type is 3"},
		{"expert_weights_scale", float32(2.5), "expert_weights_scale"},
		{"expert_shared_count", 1, "expert_shared_count is 1"},
		{"rope.scaling.alpha", float32(1000), "rope.scaling.alpha"},
		{"rope.scaling.type", "longrope", `"longrope", which is not served`},
		{"rope.scaling.type", "dynamic", `"dynamic", which is not served`},
		{"rope.scaling.factor", "four", "rope.scaling.factor is string"},
	}
	for _, c := range cases {
		if _, err := openedKeys(t, "llama", map[string]any{"ARCH." + c.key: c.value}); !matches(err, c.want) {
			t.Errorf("%s %v: got %v, want %q", c.key, c.value, err, c.want)
		}
	}
}
