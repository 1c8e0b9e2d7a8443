package calls

import "testing"

func TestShort(t *testing.T) {
	cases := []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"lm_head.weight"}, "lm_head"},
		{[]string{"model.layers.12.mlp.down_proj.weight"}, "down_proj"},
		{[]string{"model.layers.3.self_attn.q_proj.weight", "model.layers.3.self_attn.k_proj.weight", "model.layers.3.self_attn.v_proj.weight"}, "q+k+v_proj"},
		{[]string{"model.layers.3.mlp.experts.0.gate_proj.weight", "model.layers.3.mlp.experts.0.up_proj.weight"}, "experts.gate+up_proj"},
		{[]string{"model.layers.3.self_attn.q_proj.bias", "model.layers.3.self_attn.k_proj.bias"}, "q_proj.bias+k_proj.bias"},
		{[]string{"7"}, ""},
	}
	for _, c := range cases {
		if got := short(c.names); got != c.want {
			t.Errorf("%q: got %q, want %q", c.names, got, c.want)
		}
	}
}
