package nn

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

const sound = `{"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
	"vocab_size": 100, "max_position_embeddings": 512, "rms_norm_eps": 1e-6}`

// with sets keys of the sound config.
func with(t *testing.T, changes string) *Config {
	t.Helper()
	c := &Config{}
	for _, text := range []string{sound, "{" + changes + "}"} {
		if err := json.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
	}
	return c
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
		{`"sliding_window": 0`, "sliding_window"},
		{`"rope_theta": 0.5`, "rope_theta"},
		{`"rope_scaling": {"rope_type": "longrope"}`, "longrope"},
		{`"rope_scaling": {"type": "linear", "factor": 0}`, "factor"},
		{`"rope_parameters": {"rope_type": "llama3", "factor": 8}`, "low_freq_factor"},
		{`"rope_parameters": {"rope_type": "yarn", "factor": 4}`, "original_max_position_embeddings"},
	}
	for _, c := range cases {
		err := with(t, c.changes).Complete()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want an error with %q", c.changes, err, c.want)
		}
	}
}

func TestWindow(t *testing.T) {
	cases := []struct {
		changes string
		want    [2]int32 // of layers 0 and 1
	}{
		{``, [2]int32{0, 0}},
		{`"sliding_window": 32`, [2]int32{32, 32}},
		{`"sliding_window": 32, "use_sliding_window": false`, [2]int32{0, 0}},
		{`"sliding_window": 32, "use_sliding_window": true, "max_window_layers": 1`, [2]int32{0, 32}},
	}
	for _, c := range cases {
		config := with(t, c.changes)
		if got := [2]int32{config.Window(0), config.Window(1)}; got != c.want {
			t.Errorf("%s: got %v, want %v", c.changes, got, c.want)
		}
	}
}

func TestFrequencies(t *testing.T) {
	cases := []struct {
		name, changes string
		want          map[int]float64 // pair → radians per position
		scale         float64
	}{
		{"default", `"rope_theta": 10000`, map[int]float64{0: 1, 1: math.Pow(10000, -2.0/16), 7: math.Pow(10000, -14.0/16)}, 1},
		{"linear", `"rope_theta": 10000, "rope_scaling": {"type": "linear", "factor": 4}`, map[int]float64{0: 0.25, 7: math.Pow(10000, -14.0/16) / 4}, 1},
		// Wavelength 2π is below 8192/4 and stays; that of pair 7, 2π·10000^(14/16) = 19869, is above 8192 and stretches.
		{"llama3", `"rope_theta": 10000, "rope_parameters": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}`,
			map[int]float64{0: 1, 7: math.Pow(10000, -14.0/16) / 8}, 1},
		// Pair 0 turns more than 32 times in 32768 positions and stays; pair 7 of theta 1e6 turns less than once and stretches.
		{"yarn", `"rope_theta": 1000000, "rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}`,
			map[int]float64{0: 1, 7: math.Pow(1e6, -14.0/16) / 4}, 0.1*math.Log(4) + 1},
	}
	for _, c := range cases {
		config := with(t, c.changes)
		if err := config.Complete(); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, scale := config.Frequencies(16)
		for pair, want := range c.want {
			if math.Abs(float64(got[pair])/want-1) > 1e-6 {
				t.Errorf("%s: pair %d is %v, want %v", c.name, pair, got[pair], want)
			}
		}
		if math.Abs(float64(scale)-c.scale) > 1e-6 {
			t.Errorf("%s: scale %v, want %v", c.name, scale, c.scale)
		}
	}
}
