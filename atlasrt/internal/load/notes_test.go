package load_test

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

func TestNotes(t *testing.T) {
	one := []float32{1}
	scales := []weights.Tensor{f32("l.k_proj.k_scale", one), f32("l.v_proj.v_scale", one), f32("l.q_proj.input_scale", one), f32("l.q_proj.weight_scale", one)}
	cases := []struct {
		config  string
		tensors []weights.Tensor
		want    []string
	}{
		{`{}`, nil, nil},
		{`{"quantization_config": {"quant_method": "fp8"}}`, nil, nil},
		{`{"quantization_config": {"quant_method": "fp8"}}`, scales, []string{"quantising keys and values (2 tensors", "quantising activations (1 tensors"}},
		{`{"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}`, nil, []string{"quantising keys and values (0 tensors"}},
	}
	for _, c := range cases {
		got := load.Notes(newMemory(t, c.config, c.tensors...))
		if len(got) != len(c.want) {
			t.Errorf("%s: got %q", c.config, got)
			continue
		}
		for i, line := range got {
			if !strings.Contains(line, c.want[i]) {
				t.Errorf("%s: got %q, want %q", c.config, line, c.want[i])
			}
		}
	}
}
