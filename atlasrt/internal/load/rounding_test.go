package load_test

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// Activations may be rounded where the checkpoint's configuration asks for it, by the columns that its weights have scales for, and nowhere else.
func TestRoundingIsWhatTheCheckpointAsksFor(t *testing.T) {
	blocks := f32("q.weight_scale_inv", []float32{1}, 1, 1)
	group := func(in string) string {
		return `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"input_activations": ` + in + `}}}}`
	}
	cases := []struct {
		name, config string
		scale        string
		want         op.Rounding
	}{
		{"dynamic", `{"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}`, "", op.RoundingE4M3x128},
		{"dynamic by default", `{"quantization_config": {"quant_method": "fp8"}}`, "", op.RoundingE4M3x128},
		{"static", `{"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}`, "", op.RoundingNone},
		{"dynamic, one scale for all", `{"quantization_config": {"quant_method": "fp8"}}`, "q.weight_scale", op.RoundingE4M3xRow},
		{"static, one scale for all", `{"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}`, "q.weight_scale", op.RoundingNone},
		{"tokens, modelopt", `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}}`, "q.weight_scale", op.RoundingE4M3xRow},
		{"static, modelopt", `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}`, "q.weight_scale", op.RoundingNone},
		{"weights alone, modelopt", `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}}`, "", op.RoundingNone},
		{"weights alone, compressed-tensors", group(`null`), "", op.RoundingNone},
		{"groups, compressed-tensors", group(`{"num_bits": 8, "type": "float", "strategy": "group", "group_size": 128, "dynamic": true}`), "", op.RoundingE4M3x128},
		{"other groups", group(`{"num_bits": 8, "type": "float", "strategy": "group", "group_size": 64, "dynamic": true}`), "", op.RoundingNone},
		{"tokens and blocks", group(`{"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}`), "", op.RoundingNone},
		{"tokens", group(`{"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}`), "q.weight_scale", op.RoundingE4M3xRow},
		{"bytes", group(`{"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true}`), "q.weight_scale", op.RoundingNone},
		{"static, compressed-tensors", group(`{"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": false}`), "q.weight_scale", op.RoundingNone},
		{"groups, but rows of weights", group(`{"num_bits": 8, "type": "float", "strategy": "group", "group_size": 128, "dynamic": true}`), "q.weight_scale", op.RoundingNone},
		{"no configuration", `{}`, "", op.RoundingNone},
	}
	for _, c := range cases {
		scale := blocks
		if c.scale != "" {
			scale = f32(c.scale, []float32{1})
		}
		m := newMemory(t, c.config, repeated("q.weight", tensor.F8_E4M3, one, 32, 32), scale)
		w, _, err := place(m, 1, 32, func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: 32}} })
		if err != nil || w.Rounding != c.want {
			t.Errorf("%s: got rounding %v, error %v, want %v", c.name, w.Rounding, err, c.want)
		}
		kept := load.NewCounter(oracle.New(op.F32), load.Unrounded(load.Stored(m, oracle.New(op.F32))))
		if w := kept.Matrix(32, model.Part{Name: "q.weight", Rows: 32}); w.Rounding != op.RoundingNone {
			t.Errorf("%s: kept activations have rounding %v", c.name, w.Rounding)
		}
	}
}

// Each module's group says how its activations may be rounded. A stack of matrices is rounded where all of them may be.
func TestRoundingOfModules(t *testing.T) {
	const config = `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {
		"group_0": {"targets": ["re:.*q$", "re:.*k$"], "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}}, "group_1": {"targets": ["re:.*v$"]}}}}`
	m := newMemory(t, config,
		repeated("q.weight", tensor.F8_E4M3, one, 32, 32), f32("q.weight_scale", []float32{1}), repeated("k.weight", tensor.F8_E4M3, one, 32, 32), f32("k.weight_scale", []float32{1}),
		repeated("v.weight", tensor.F8_E4M3, one, 32, 32), f32("v.weight_scale", []float32{1}))
	for names, want := range map[string]op.Rounding{"q": op.RoundingE4M3xRow, "qk": op.RoundingE4M3xRow, "v": op.RoundingNone, "qv": op.RoundingNone, "vq": op.RoundingNone} {
		parts := func(int32) (parts []model.Part) {
			for _, name := range names {
				parts = append(parts, model.Part{Name: string(name) + ".weight", Rows: 32})
			}
			return parts
		}
		counted := load.NewCounter(oracle.New(op.F32), load.Stored(m, oracle.New(op.F32))).Experts(1, 32, parts)
		if counted.Rounding != want {
			t.Errorf("%s: counted with rounding %v, want %v", names, counted.Rounding, want)
		}
		only := newMemory(t, config)
		for name, x := range m.tensors {
			if strings.Contains(names, name[:1]) {
				only.tensors[name] = x
			}
		}
		if w, _, err := place(only, 1, 32, parts); err != nil || w.Rounding != want {
			t.Errorf("%s: loaded with rounding %v, %v, want %v", names, w.Rounding, err, want)
		}
	}
}
