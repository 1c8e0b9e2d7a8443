package nn

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// config reads settings with the changes, by a class of these windows.
func config(t *testing.T, windows Windows, changes string) (*Config, error) {
	t.Helper()
	keys := map[string]any{"model_type": "x", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
		"vocab_size": 100, "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "hidden_act": "silu"}
	changed := map[string]any{}
	if err := json.Unmarshal([]byte("{"+changes+"}"), &changed); err != nil {
		t.Fatalf("%s: %v", changes, err)
	}
	maps.Copy(keys, changed)
	text, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return Read("config.json", text, &Config{Rotary: Rotary{Theta: 10000}, Windows: windows})
}

func TestCompleteRefusesWhatMakesNoSense(t *testing.T) {
	cases := []struct{ changes, want string }{
		{``, ""},
		{`"num_attention_heads": 0`, "num_attention_heads"},
		{`"num_hidden_layers": 1000000000`, "num_hidden_layers"},
		{`"num_key_value_heads": 3`, "no multiple of num_key_value_heads"},
		{`"num_key_value_heads": 8`, "num_key_value_heads"},
		{`"hidden_size": 66`, "no multiple of num_attention_heads"},
		{`"head_dim": 15`, "head_dim"},
		{`"vocab_size": -1`, "vocab_size"},
		{`"rms_norm_eps": 0`, "rms_norm_eps"},
		{`"hidden_act": "gelu"`, "hidden_act"},
		{`"sliding_window": -1`, "sliding_window"},
		{`"layer_types": ["full_attention"]`, "layer_types has 1 entries"},
		{`"layer_types": ["full_attention", "chunked_attention"]`, "chunked_attention"},
		{`"layer_types": ["full_attention", "sliding_attention"]`, "give no window"},
		{`"hidden_size": null`, "hidden_size is null"},
		{`"rms_norm_eps": null`, "rms_norm_eps is null"},
		{`"hidden_size": 64.5`, "hidden_size is 64.5, wanted an integer"},
		{`"hidden_size": "many"`, `hidden_size is "many", wanted an integer`},
		{`"hidden_size": 1e300`, "hidden_size is 1e+300, wanted an integer from -2147483647 to 2147483647"},
		{`"rms_norm_eps": "Infinity"`, "wanted a number"},
		{`"hidden_act": 3`, "hidden_act is 3, wanted a text"},
		{`"tie_word_embeddings": "yes"`, "wanted true or false"},
		{`"layer_types": "full_attention"`, "wanted an array"},
		{`"layer_types": [1, 2]`, "has an element that is 1, wanted a text"},
		{`"rope_scaling": 4`, "rope_scaling is 4, wanted an object"},
		{`"rope_theta": 0.5`, "rope_theta"},
		{`"rope_theta": null`, "rope_theta is null"},
		{`"rope_scaling": {"rope_type": "longrope", "short_factor": [1], "long_factor": [2]}`, "longrope"},
		{`"rope_scaling": {"type": "su", "factor": 1}`, `"su" is not served`},
		{`"rope_scaling": {"type": "ntk", "factor": 2}`, `"ntk" is not served`},
		{`"rope_parameters": {"rope_type": "proportional"}`, "proportional"},
		{`"rope_scaling": {"type": "dynamic", "alpha": 1000}`, "rope_scaling.alpha is 1000"},
		{`"rope_scaling": {"type": "yarn", "factor": 2, "attn_factor": 0.5}`, "rope_scaling.attn_factor is 0.5"},
		{`"rope_scaling": {"type": "linear", "factor": 0}`, "factor"},
		{`"rope_scaling": {"type": "linear", "factor": null}`, "factor of linear rope scaling is not given"},
		{`"rope_scaling": {"type": "linear"}`, "factor of linear rope scaling is not given"},
		{`"rope_scaling": {"type": "linear", "factor": -2}`, "factor"},
		{`"rope_parameters": {"rope_type": "llama3", "factor": 8}`, "low_freq_factor"},
		{`"rope_parameters": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1}`, "they are 4 and 1"},
		{`"rope_parameters": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": -1}`, "original_max_position_embeddings"},
		{`"rope_parameters": {"rope_type": "yarn", "factor": 4, "beta_fast": 1, "beta_slow": 2}`, "beta_fast 1 and beta_slow 2"},
		{`"rope_parameters": {"rope_type": "yarn", "factor": 4, "attention_factor": 0}`, "attention_factor"},
		{`"rope_parameters": {"rope_type": "yarn", "factor": 4, "mscale": 1, "mscale_all_dim": -8}`, "multiplies cosines and sines"},
		{`"rope_parameters": {"rope_type": "yarn", "factor": 4, "extrapolation_factor": 2}`, "extrapolation_factor"},
		{`"rope_parameters": {"full_attention": {"rope_theta": 5}, "sliding_attention": {"rope_theta": 7}}`, "differ between full_attention and sliding_attention"},
		{`"partial_rotary_factor": 0`, "0 elements of heads of 16 turn"},
		{`"partial_rotary_factor": 1.5`, "24 elements of heads of 16 turn"},
		{`"partial_rotary_factor": 0.2`, "3 elements of heads of 16 turn"},
		{`"partial_rotary_factor": 0.5, "rotary_dim": 4`, "rotary_dim is 4"},
	}
	for _, c := range cases {
		_, err := config(t, AlwaysWindows, c.changes)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want an error with %q", c.changes, err, c.want)
		}
	}
}

func TestWindow(t *testing.T) {
	cases := []struct {
		rule    Windows
		changes string
		want    [2]int32 // of layers 0 and 1
	}{
		{NoWindows, ``, [2]int32{0, 0}},
		{NoWindows, `"sliding_window": 32`, [2]int32{0, 0}},
		{NoWindows, `"sliding_window": 32, "use_sliding_window": true, "max_window_layers": 0, "layer_types": ["full_attention", "full_attention"]`, [2]int32{0, 0}},
		{AlwaysWindows, `"sliding_window": 32`, [2]int32{32, 32}},
		{AlwaysWindows, `"sliding_window": 32, "max_window_layers": 1`, [2]int32{32, 32}},
		{AlwaysWindows, `"sliding_window": null`, [2]int32{0, 0}},
		{AlwaysWindows, `"sliding_window": 0`, [2]int32{0, 0}},
		{AlwaysWindows, `"sliding_window": 32, "use_sliding_window": false`, [2]int32{0, 0}},
		{AlwaysWindows, `"sliding_window": 32, "layer_types": ["sliding_attention", "full_attention"]`, [2]int32{32, 0}},
		{SwitchedWindow, `"sliding_window": 32, "use_sliding_window": true, "max_window_layers": 1`, [2]int32{32, 32}},
		{LaterWindows, `"sliding_window": 32, "use_sliding_window": false`, [2]int32{0, 0}},
		{LaterWindows, `"sliding_window": 32, "use_sliding_window": null`, [2]int32{0, 0}},
		{LaterWindows, `"sliding_window": 0, "use_sliding_window": false`, [2]int32{0, 0}},
		{LaterWindows, `"sliding_window": null, "use_sliding_window": true`, [2]int32{0, 0}},
		{LaterWindows, `"sliding_window": 32, "use_sliding_window": true, "max_window_layers": 1`, [2]int32{0, 32}},
		{LaterWindows, `"sliding_window": 32, "use_sliding_window": true, "max_window_layers": 2`, [2]int32{0, 0}},
		{LaterWindows, `"sliding_window": 32, "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"], "max_window_layers": 1`, [2]int32{32, 0}},
		{LaterWindows, `"sliding_window": 32, "use_sliding_window": true, "layer_types": null, "max_window_layers": 1`, [2]int32{0, 32}},
	}
	for _, c := range cases {
		config, err := config(t, c.rule, c.changes)
		if err != nil {
			t.Errorf("%d %s: %v", c.rule, c.changes, err)
		} else if got := [2]int32{config.Window(0), config.Window(1)}; got != c.want {
			t.Errorf("%d %s: got %v, want %v", c.rule, c.changes, got, c.want)
		}
	}
	if _, err := config(t, NoWindows, `"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 4`); err == nil || !strings.Contains(err.Error(), "has no sliding window") {
		t.Errorf("sliding layers of a class without windows: %v", err)
	}
}

// testdata/rope.json has what transformers makes of each config: see tools/testdata/settings.py.
func TestFrequencies(t *testing.T) {
	text, err := os.ReadFile("testdata/rope.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct {
		Name      string
		Config    map[string]any
		Frequency []float64
		Scale     float64
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	for _, c := range recorded {
		maps.Copy(c.Config, map[string]any{"hidden_size": 80, "head_dim": 20, "max_position_embeddings": 8192})
		changes, err := json.Marshal(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		config, err := config(t, NoWindows, string(changes[1:len(changes)-1]))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got, scale := config.Frequencies()
		if len(got) != len(c.Frequency) || len(got) != int(config.Dims())/2 {
			t.Errorf("%s: %d pairs turn, want %d", c.Name, len(got), len(c.Frequency))
			continue
		}
		for pair, want := range c.Frequency {
			if math.Abs(float64(got[pair])/want-1) > 2e-6 {
				t.Errorf("%s: pair %d is %v, want %v", c.Name, pair, got[pair], want)
			}
		}
		if math.Abs(float64(scale)-c.Scale) > 1e-6 {
			t.Errorf("%s: scale %v, want %v", c.Name, scale, c.Scale)
		}
	}
}

// Spellings that mean the same turn alike.
func TestSpellingsOfRotary(t *testing.T) {
	cases := []struct{ changes, like string }{
		{`"partial_rotary_factor": "0.5"`, `"partial_rotary_factor": 0.5`},
		{`"rotary_pct": 0.5`, `"partial_rotary_factor": 0.5`},
		{`"rotary_dim": 8`, `"partial_rotary_factor": 0.5`},
		{`"rotary_dim": 8, "rotary_pct": 0.5`, `"partial_rotary_factor": 0.5`},
		{`"rope_parameters": {"partial_rotary_factor": 0.5}`, `"partial_rotary_factor": 0.5`},
		{`"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2}, "sliding_attention": {"rope_type": "linear", "factor": 2}}`, `"rope_scaling": {"type": "linear", "factor": 2}`},
		{`"rope_parameters": {"full_attention": {"rope_theta": 7}}`, `"rope_theta": 7`},
		{`"rope_theta": "5e5"`, `"rope_theta": 500000`},
		{`"rope_scaling": {"type": "none"}`, ``},
		{`"rope_scaling": null`, ``},
		{`"rope_scaling": {"type": null}`, ``},
		{`"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}`, ``},
		{`"rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}`, ``},
		{`"rope_scaling": {"type": "linear", "factor": 1}`, ``},
		{`"rope_scaling": {"type": "dynamic", "factor": 4}`, ``},
		{`"rope_scaling": {"rope_type": null, "type": "linear", "factor": "4"}`, `"rope_scaling": {"type": "linear", "factor": 4}`},
		{`"rope_scaling": {"type": "yarn", "factor": null, "original_max_position_embeddings": 128}`, `"rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 128}`},
		{`"rope_scaling": {"type": "yarn", "factor": 4, "extrapolation_factor": 0, "attention_factor": 1}`, `"rope_scaling": {"type": "linear", "factor": 4}`},
	}
	turned := func(changes string) string {
		config, err := config(t, NoWindows, changes)
		if err != nil {
			return err.Error()
		}
		frequency, scale := config.Frequencies()
		return fmt.Sprint(frequency, scale)
	}
	for _, c := range cases {
		if got, want := turned(c.changes), turned(c.like); got != want {
			t.Errorf("%s: got %s, want %s as of %s", c.changes, got, want, c.like)
		}
	}
}

// The share of the unstretched frequency that YaRN keeps blends between linear scaling and YaRN's own.
func TestExtrapolationBlends(t *testing.T) {
	var w [3][]float32
	for i, share := range []float64{0, 0.5, 1} {
		config, err := config(t, NoWindows, fmt.Sprintf(`"rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 128, "extrapolation_factor": %v}`, share))
		if err != nil {
			t.Fatal(err)
		}
		w[i], _ = config.Frequencies()
	}
	for pair, got := range w[1] {
		if want := (w[0][pair] + w[2][pair]) / 2; math.Abs(float64(got/want-1)) > 1e-6 {
			t.Errorf("pair %d: %v, want %v", pair, got, want)
		}
	}
	if w[0][0] == w[2][0] {
		t.Error("the first pair does not tell them apart")
	}
}

func TestDynamicScalingBoundsTheContext(t *testing.T) {
	config, err := config(t, NoWindows, `"rope_scaling": {"type": "dynamic", "factor": 4, "original_max_position_embeddings": 128}`)
	if err != nil || config.MaxPositions != 128 {
		t.Errorf("got %d positions, %v; want 128", config.MaxPositions, err)
	}
}

func TestNumbersInOtherSpellings(t *testing.T) {
	cases := []struct{ changes, assumed string }{
		{`"hidden_size": 64.0, "rms_norm_eps": 1e-06`, ""},
		{`"hidden_size": 6.4e1`, ""},
		{`"hidden_size": "64"`, `hidden_size is the text "64": read as 64`},
		{`"rms_norm_eps": "1e-6"`, `rms_norm_eps is the text "1e-6": read as 1e-06`},
		{`"tie_word_embeddings": "false"`, `tie_word_embeddings is the text "false": read as false`},
		{`"tie_word_embeddings": 0`, ""},
		{`"tie_word_embeddings": null`, ""},
		{`"num_key_value_heads": "2"`, "num_key_value_heads"},
	}
	want, err := config(t, NoWindows, ``)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		got, err := config(t, NoWindows, c.changes)
		if err != nil || got.Hidden != want.Hidden || got.Eps != want.Eps || got.Tied != want.Tied || got.KVHeads != want.KVHeads {
			t.Errorf("%s: got %+v, %v", c.changes, got, err)
		}
		if line := strings.Join(got.Assumed, "; "); c.assumed == "" && line != "" || !strings.Contains(line, c.assumed) {
			t.Errorf("%s: assumed %q, want %q", c.changes, line, c.assumed)
		}
	}
	if c, err := config(t, NoWindows, `"num_key_value_heads": null, "head_dim": null`); err != nil || c.KVHeads != 4 || c.HeadDim != 16 {
		t.Errorf("null heads: %d of %d, %v; want 4 of 16", c.KVHeads, c.HeadDim, err)
	}
	if c, err := config(t, NoWindows, `"Hidden_Size": 128`); err != nil || c.Hidden != 64 {
		t.Errorf("a key of other case: %d, %v; want it left alone", c.Hidden, err)
	}
}

func TestUnservedSettingsAreRefused(t *testing.T) {
	cases := []struct{ changes, want string }{
		{`"attn_logit_softcapping": 50.0`, "attn_logit_softcapping is 50"},
		{`"attn_logit_softcapping": null`, ""},
		{`"residual_multiplier": 1.0, "logits_scaling": 1`, ""},
		{`"residual_multiplier": 0.22`, "residual_multiplier is 0.22"},
		{`"num_local_experts": 8`, "num_local_experts is 8"},
		{`"num_local_experts": 0`, ""},
		{`"is_causal": false`, "is_causal is false"},
		{`"is_causal": true`, ""},
		{`"residual_multiplier": 0`, "residual_multiplier is 0"},
		{`"clip_qkv": 8`, "clip_qkv"},
		{`"scoring_func": "sigmoid"`, "scoring_func"},
		{`"scoring_func": "softmax"`, ""},
		{`"no_rope_layers": [1, 0]`, "no_rope_layers"},
		{`"sliding_window_pattern": 6`, "sliding_window_pattern"},
		{`"rope_scaling": {"type": "yarn", "factor": 2, "llama_4_scaling_beta": 0.1}`, "rope_scaling.llama_4_scaling_beta"},
		{`"use_qk_norm": true, "logit_scale": 0.0625`, "logit_scale"},
	}
	for _, c := range cases {
		_, err := config(t, NoWindows, c.changes)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want an error with %q", c.changes, err, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	c, err := config(t, NoWindows, `"sliding_window": 4, "foo": 1, "clip_qkv": null, "rope_scaling": {"rope_type": "linear", "factor": 2, "beta_fast": 3, "foo": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		key  string
		want bool
	}{
		{"hidden_size", true}, {"rope_theta", true}, {"rope_scaling", true}, {"rope_scaling.factor", true}, {"clip_qkv", true},
		{"foo", false}, {"rope_scaling.foo", false}, {"rope_scaling.beta_fast", false}, {"sliding_window", false},
	}
	for _, k := range cases {
		if got := slices.Contains(c.Keys(), k.key); got != k.want {
			t.Errorf("%s: known is %v, want %v", k.key, got, k.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"hidden_size": "64", "layer_types": [1], "rope_scaling": {"type": "yarn", "factor": null}}`)
	f.Add(`{"num_hidden_layers": 1, "layer_types": ["sliding_attention"], "sliding_window": 4, "rope_parameters": {"full_attention": {"partial_rotary_factor": 1e300}}}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read("config.json", []byte(text), &Config{
			Hidden: 64, Layers: 2, Heads: 4, Intermediate: 8, Vocab: 8, MaxPositions: 64, Eps: 1e-6, Activation: "silu", Rotary: Rotary{Theta: 10000}, Windows: LaterWindows,
		})
		if err != nil {
			return
		}
		for layer := range c.Layers {
			c.Window(layer)
		}
		frequency, scale := c.Frequencies()
		for _, w := range append(frequency, scale) {
			if math.IsNaN(float64(w)) || math.IsInf(float64(w), 0) {
				t.Fatalf("%s: frequencies %v, scale %v", text, frequency, scale)
			}
		}
	})
}
