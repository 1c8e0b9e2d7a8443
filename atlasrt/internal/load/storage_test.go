package load_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

const one, half = 0x38, 0x30 // in e4m3

// Every dialect: all codes are ones, so that a weight is its scale.
func TestDialects(t *testing.T) {
	const ct = `{"quantization_config": {"quant_method": "compressed-tensors"}}`
	ramp := func(n int) []float32 {
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i + 1)
		}
		return values
	}
	cases := []struct {
		name    string
		config  string
		tensors []weights.Tensor
		cols    int32
		parts   func(int32) []model.Part
		scheme  op.Scheme
		want    map[[2]int]float32 // by row and column
	}{
		{"fp8 of a tensor", `{}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 3, 5), f32("q.weight_scale", []float32{3}), f32("q.input_scale", []float32{9}),
			repeated("k.weight", tensor.F8_E4M3, half, 2, 5), f32("k.weight_scale", []float32{4}, 1), f32("k.k_scale", []float32{9}),
		}, 5, two(3, 2), op.SchemeF8, map[[2]int]float32{{0, 0}: 3, {2, 4}: 3, {3, 0}: 2, {4, 4}: 2}},
		{"fp8 of rows", ct, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 3, 5), bf16("q.weight_scale", ramp(3), 3, 1),
			repeated("k.weight", tensor.F8_E4M3, half, 2, 5), f32("k.weight_scale", ramp(2), 2),
		}, 5, two(3, 2), op.SchemeF8, map[[2]int]float32{{0, 0}: 1, {2, 4}: 3, {3, 0}: 0.5, {4, 4}: 1}},
		{"fp8 of blocks", `{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 144, 257), f32("q.weight_scale_inv", ramp(6), 2, 3),
			repeated("k.weight", tensor.F8_E4M3, half, 17, 257), bf16("k.weight_scale_inv", ramp(3), 1, 3),
		}, 257, two(144, 17), op.SchemeF8Block, map[[2]int]float32{
			{0, 0}: 1, {127, 127}: 1, {127, 128}: 2, {127, 256}: 3, {128, 0}: 4, {143, 256}: 6, {144, 0}: 0.5, {160, 255}: 1, {160, 256}: 1.5,
		}},
		{"fp8 of other blocks", `{"quantization_config": {"weight_block_size": [32, 256]}}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 48, 300), f32("q.weight_scale_inv", ramp(4), 2, 2),
			repeated("k.weight", tensor.F8_E4M3, one, 1, 300), f32("k.weight_scale_inv", ramp(2), 1, 1, 2, 1),
		}, 300, two(48, 1), op.SchemeF8Block, map[[2]int]float32{{31, 255}: 1, {31, 256}: 2, {32, 0}: 3, {47, 299}: 4, {48, 255}: 1, {48, 256}: 2}},
		{"fp8 of a tensor, said to be of blocks", `{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 3, 5), f32("q.weight_scale", []float32{3}), repeated("k.weight", tensor.F8_E4M3, half, 2, 5), f32("k.weight_scale", []float32{4}, 1),
		}, 5, two(3, 2), op.SchemeF8, map[[2]int]float32{{0, 0}: 3, {3, 0}: 2}},
		{"fp8 of blocks of compressed-tensors", `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0":
			{"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}}}}}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 144, 100), f32("q.weight_scale", ramp(2), 2, 1), repeated("k.weight", tensor.F8_E4M3, half, 17, 100), f32("k.weight_scale", ramp(1), 1, 1),
		}, 100, two(144, 17), op.SchemeF8Block, map[[2]int]float32{{127, 99}: 1, {128, 0}: 2, {144, 0}: 0.5}},
		{"nvfp4 of modelopt and compressed-tensors", ct, []weights.Tensor{
			repeated("q.weight", tensor.U8, 0x22, 3, 16), repeated("q.weight_scale", tensor.F8_E4M3, one, 3, 2), f32("q.weight_scale_2", []float32{3}),
			repeated("k.weight_packed", tensor.U8, 0x24, 1, 16), repeated("k.weight_scale", tensor.F8_E4M3, half, 1, 2),
			f32("k.weight_global_scale", []float32{4}, 1), f32("k.input_global_scale", []float32{9}, 1),
		}, 32, two(3, 1), op.SchemeNVFP4, map[[2]int]float32{{0, 0}: 3, {2, 31}: 3, {3, 0}: 0.25, {3, 1}: 0.125}},
	}
	for _, c := range cases {
		w, rows, err := place(newMemory(t, c.config, c.tensors...), 1, c.cols, c.parts)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if w.Scheme != c.scheme {
			t.Errorf("%s: loaded as %s, want %s", c.name, w.Scheme, c.scheme)
		}
		for at, want := range c.want {
			if got := rows[at[0]][at[1]]; got != want {
				t.Errorf("%s: weight %v is %v, want %v", c.name, at, got, want)
			}
		}
	}
}

// What is damaged or not served is an error that says so.
func TestQuantisedErrors(t *testing.T) {
	zero, nan := []float32{0}, []float32{float32(math.NaN())}
	f8 := repeated("q.weight", tensor.F8_E4M3, one, 32, 32)
	packed, scale := repeated("q.weight_packed", tensor.U8, 0x22, 32, 16), repeated("q.weight_scale", tensor.F8_E4M3, one, 32, 2)
	codes := repeated("q.weight", tensor.U8, 0x22, 32, 16)
	cases := []struct {
		name    string
		config  string
		tensors []weights.Tensor
		want    string
	}{
		{"no scale", `{}`, []weights.Tensor{f8}, "neither weight_scale nor weight_scale_inv"},
		{"scales of other rows", `{}`, []weights.Tensor{f8, f32("q.weight_scale", make([]float32, 31), 31)}, "shape [31], wanted one, one for each of 32 rows ([32] or [32, 1])"},
		{"scales of other blocks", `{}`, []weights.Tensor{f8, f32("q.weight_scale_inv", make([]float32, 4), 2, 2)}, "one for each block of 128×128 ([1, 1])"},
		{"small blocks", `{"quantization_config": {"weight_block_size": [8, 8]}}`, []weights.Tensor{f8, f32("q.weight_scale_inv", make([]float32, 16), 4, 4)}, "each block of 8×8, wanted multiples of 16"},
		{"impossible blocks", `{"quantization_config": {"weight_block_size": [0, -1]}}`, []weights.Tensor{f8, f32("q.weight_scale_inv", make([]float32, 16), 4, 4)}, "weight_block_size is [0 -1]"},
		{"scales of a wrong type", `{}`, []weights.Tensor{f8, repeated("q.weight_scale", tensor.I32, 1, 32, 1)}, "scales of type I32"},
		{"another shape", `{}`, []weights.Tensor{repeated("q.weight", tensor.F8_E4M3, one, 32, 33), f32("q.weight_scale", []float32{1})}, "q.weight is [32, 33]"},
		{"scale is NaN", `{}`, []weights.Tensor{f8, f32("q.weight_scale", nan)}, "NaN or infinite"},
		{"no block scales", `{"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}`, []weights.Tensor{codes, f32("q.weight_scale_2", []float32{1})}, "quantised by modelopt NVFP4"},
		{"no tensor scale", `{}`, []weights.Tensor{codes, scale}, "without its weight_scale_2"},
		{"no global scale", `{}`, []weights.Tensor{packed, scale}, "without its weight_global_scale"},
		{"global scale is zero", `{}`, []weights.Tensor{packed, scale, f32("q.weight_global_scale", zero)}, "scaled by +Inf"},
		{"global scale is an integer", `{}`, []weights.Tensor{packed, scale, repeated("q.weight_global_scale", tensor.I32, 1, 1)}, "scale of type I32"},
		{"global scales of columns", `{}`, []weights.Tensor{packed, scale, f32("q.weight_global_scale", make([]float32, 32), 1, 32)}, "q.weight_global_scale is [1, 32], wanted one scale or one for each of 32 rows"},
		{"two global scales", `{}`, []weights.Tensor{packed, scale, f32("q.weight_global_scale", []float32{1, 1}, 2)}, "one scale or one for each of 32 rows"},
		{"few block scales", `{}`, []weights.Tensor{packed, repeated("q.weight_scale", tensor.F8_E4M3, one, 32, 1), f32("q.weight_global_scale", zero)}, "q.weight_scale is [32, 1]"},
		{"NaN among block scales", `{}`, []weights.Tensor{packed, repeated("q.weight_scale", tensor.F8_E4M3, 0x7f, 32, 2), f32("q.weight_global_scale", zero)}, "NaN or infinite"},
		{"bitsandbytes", `{"quantization_config": {"quant_method": "bitsandbytes"}}`, []weights.Tensor{repeated("q.weight", tensor.U8, 1, 256, 1)}, "quantised by bitsandbytes (weight of type U8), which is not served"},
		{"mlx", `{"quantization": {"bits": 4}}`, []weights.Tensor{repeated("q.weight", tensor.U32, 1, 32, 4)}, "quantised by MLX (weight of type U32), which is not served"},
		{"awq", `{"quantization_config": {"quant_method": "awq"}}`, []weights.Tensor{repeated("q.qweight", tensor.I32, 1, 32, 4)}, "quantised by awq (qweight of type I32), which is not served (served are FP8"},
		{"gptq", `{"quantization_config": {"quant_method": "gptq"}}`, []weights.Tensor{repeated("q.qweight", tensor.I32, 1, 4, 32)}, "quantised by gptq"},
		{"mxfp4", `{"quantization_config": {"quant_method": "quark"}}`, []weights.Tensor{codes, repeated("q.weight_scale", tensor.U8, 127, 32, 1)}, "q.weight is mxfp4, quantised by quark (weight of type U8)"},
		{"mxfp4 of compressed-tensors", `{"quantization_config": {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"}}`,
			[]weights.Tensor{packed, repeated("q.weight_scale", tensor.U8, 127, 32, 1)}, "q.weight is mxfp4, quantised by compressed-tensors mxfp4-pack-quantized (weight_packed of type U8)"},
		{"mxfp8", `{}`, []weights.Tensor{f8, repeated("q.weight_scale", tensor.F8_E8M0, 127, 32, 1)}, "q.weight is mxfp8, quantised by"},
		{"scales that are powers of two", `{}`, []weights.Tensor{f8, repeated("q.weight_scale_inv", tensor.F8_E8M0, 127, 1, 1)}, "q.weight is mxfp8, quantised by"},
		{"2:4 sparsity", `{"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}}`,
			[]weights.Tensor{repeated("q.compressed", tensor.F8_E4M3, one, 32, 16), repeated("q.bitmask", tensor.U8, 5, 32, 4)}, "q.weight is 2:4 sparse, quantised by compressed-tensors float-quantized (bitmask of type U8)"},
		{"Mistral's names", `{}`, []weights.Tensor{f8, f32("q.qscale_weight", []float32{1})}, "q.weight is FP8 as Mistral names its scales, quantised by"},
		{"fnuz", `{}`, []weights.Tensor{repeated("q.weight", tensor.F8_E4M3FNUZ, one, 32, 32), f32("q.weight_scale", []float32{1})}, "weight of type F8_E4M3FNUZ"},
		{"int4", `{"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized"}}`,
			[]weights.Tensor{repeated("q.weight_packed", tensor.I32, 1, 32, 4)}, "quantised by compressed-tensors pack-quantized (weight_packed of type I32)"},
		{"int4 of a group", `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int"}}}}}`,
			[]weights.Tensor{repeated("q.weight_packed", tensor.I32, 1, 32, 4)}, "q.weight is int4, quantised by compressed-tensors"},
		{"int8", `{}`, []weights.Tensor{repeated("q.weight", tensor.I8, 1, 32, 32)}, "q.weight is int8, quantised by an unknown method (weight of type I8)"},
		{"scales of nothing", `{}`, []weights.Tensor{bf16("q.weight", make([]float32, 1024), 32, 32), f32("q.weight_scale", zero)}, "q.weight is BF16, and beside it is q.weight_scale F32 []"},
		{"nothing", `{}`, nil, "no such tensor"},
	}
	for _, c := range cases {
		_, _, err := place(newMemory(t, c.config, c.tensors...), 1, 32, func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: 32}} })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// A code of FP8 that is no number is an error that names the tensor and the element, wherever it lies: kernels of a CPU would read it as 480.
func TestCodesThatAreNoNumbers(t *testing.T) {
	for _, code := range []byte{0x7f, 0xff} {
		for _, scale := range []weights.Tensor{f32("k.weight_scale", []float32{1}), f32("k.weight_scale_inv", []float32{1}, 1, 1)} {
			for _, at := range []int{0, 7, 31, 32, 500, 1022} {
				other := scale
				other.Name = strings.Replace(scale.Name, "k.", "q.", 1)
				k := repeated("k.weight", tensor.F8_E4M3, 0xfe, 31, 33)
				k.Data[at] = code
				_, _, err := place(newMemory(t, `{}`, repeated("q.weight", tensor.F8_E4M3, 0x7e, 16, 33), other, k, scale), 1, 33, two(16, 31))
				if want := fmt.Sprintf("k.weight F8_E4M3 [31, 33]: element %d is NaN or infinite: the file is damaged", at); err == nil || err.Error() != want {
					t.Errorf("%#x with %s: got %v, want %q", code, scale.Name, err, want)
				}
			}
		}
	}
}

// An error is as long as a screen, however many experts are damaged.
func TestErrorsOfManyTensors(t *testing.T) {
	var tensors []weights.Tensor
	for e := range 100 {
		tensors = append(tensors, repeated(fmt.Sprintf("%d.weight", e), tensor.F8_E4M3, 0x7f, 16, 16), f32(fmt.Sprintf("%d.weight_scale", e), []float32{1}))
	}
	_, _, err := place(newMemory(t, `{}`, tensors...), 100, 16, func(e int32) []model.Part { return []model.Part{{Name: fmt.Sprintf("%d.weight", e), Rows: 16}} })
	if err == nil || strings.Count(err.Error(), "\n") != 30 || !strings.HasSuffix(err.Error(), "and 70 more errors") {
		t.Errorf("got %v", err)
	}
}

// Tensors and a configuration that cannot both be right are an error that shows both. That a list is wrong about a matrix is none: what is
// stored counts, and a line says so.
func TestContradictions(t *testing.T) {
	f8, scale := repeated("layers.0.q.weight", tensor.F8_E4M3, one, 32, 32), f32("layers.0.q.weight_scale", []float32{1})
	codes := []weights.Tensor{repeated("layers.0.q.weight", tensor.U8, 0x22, 32, 16), repeated("layers.0.q.weight_scale", tensor.F8_E4M3, one, 32, 2), f32("layers.0.q.weight_scale_2", []float32{1})}
	plain := bf16("layers.0.q.weight", make([]float32, 1024), 32, 32)
	config := func(text string) string { return `{"quantization_config": {` + text + `}}` }
	const modelopt, fp8 = `"quant_method": "modelopt", "quant_algo": "NVFP4", `, `"quant_method": "fp8", `
	cases := []struct {
		name, config string
		tensors      []weights.Tensor
		err, note    string
	}{
		{"nvfp4 and fp8", config(fp8 + `"fmt": "e4m3"`), codes, "layers.0.q.weight is nvfp4 by its tensors, and fp8 by quant_method fp8", ""},
		{"fp8 and nvfp4", config(modelopt + `"group_size": 16`), []weights.Tensor{f8, scale}, "layers.0.q.weight is fp8 by its tensors, and nvfp4 by quant_algo NVFP4", ""},
		{"nvfp4 and int4", config(`"quant_method": "modelopt", "quant_algo": "INT4_AWQ"`), codes, "is nvfp4 by its tensors, and int4 by quant_algo INT4_AWQ", ""},
		{"fp8 and mxfp8", config(`"quant_method": "modelopt", "quant_algo": "MXFP8"`), []weights.Tensor{f8, scale}, "is fp8 by its tensors, and mxfp8 by quant_algo MXFP8", ""},
		{"groups of 32", config(modelopt + `"group_size": 32`), codes, "is nvfp4 by its tensors, of which 16 columns share a scale, and by quant_algo NVFP4 so do 32 columns", ""},
		{"blocks of another size", config(fp8 + `"weight_block_size": [16, 128]`), []weights.Tensor{f8, f32("layers.0.q.weight_scale_inv", []float32{1}, 1, 1)}, "", ""}, // one scale is that of the matrix
		{"blocks of another number", config(fp8 + `"weight_block_size": [16, 128]`), []weights.Tensor{f8, f32("layers.0.q.weight_scale_inv", []float32{1, 1, 1}, 3, 1)}, "scales of shape [3, 1], wanted one, one for each of 32 rows ([32] or [32, 1]), or one for each block of 16×128 ([2, 1])", ""},
		{"two scales", config(fp8 + `"fmt": "e4m3"`), []weights.Tensor{f8, scale, f32("layers.0.q.weight_scale_inv", []float32{1})}, "is F8_E4M3 with two scales: layers.0.q.weight_scale_inv F32 [] and layers.0.q.weight_scale F32 []", ""},
		{"a scale of plain weights", config(modelopt + `"ignore": ["q"]`), []weights.Tensor{plain, scale}, `beside it is layers.0.q.weight_scale F32 [], which belongs to quantised weights (its configuration says: plain by ignore "q")`, ""},
		{"plain and packed weights", config(modelopt + `"group_size": 16`), []weights.Tensor{plain, repeated("layers.0.q.weight_packed", tensor.U8, 1, 32, 16)}, "beside it is layers.0.q.weight_packed U8 [32, 16]", ""},
		{"a list that cannot be read", config(`"quant_method": "compressed-tensors", "ignore": ["re:("]`), codes, `layers.0.q.weight is quantised in a way that cannot be read: config.json: quantization_config.ignore has the pattern "re:("`, ""},
		{"plain weights and a list that cannot be read", config(`"quant_method": "compressed-tensors", "ignore": ["re:("]`), []weights.Tensor{plain}, "", ""},
		{"said to be quantised", config(modelopt + `"group_size": 16`), []weights.Tensor{plain}, "", "layers.0.q.weight is stored as plain and said to be nvfp4 by quant_algo NVFP4: what is stored counts"},
		{"said to be plain", config(modelopt + `"ignore": ["*q"]`), codes, "", `layers.0.q.weight is stored as nvfp4 and said to be plain by ignore "*q": what is stored counts`},
		{"as it is said", config(modelopt + `"group_size": 16`), codes, "", ""},
		{"another kind of scale", config(fp8 + `"weight_block_size": [128, 128]`), []weights.Tensor{f8, scale}, "", ""},
		{"a method without rules", config(`"quant_method": "torchao"`), codes, "", ""},
	}
	part := func(int32) []model.Part { return []model.Part{{Name: "layers.0.q.weight", Rows: 32}} }
	for _, c := range cases {
		m := newMemory(t, c.config, c.tensors...)
		_, _, err := place(m, 1, 32, part)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.err)
		}
		if err != nil {
			continue
		}
		counter := load.NewCounter(oracle.New(op.F32), load.Stored(m, oracle.New(op.F32)))
		counter.Experts(1, 32, part)
		if got := strings.Join(counter.Otherwise(), "; "); got != c.note {
			t.Errorf("%s: noted %q, want %q", c.name, got, c.note)
		}
	}
}

// Made-up matrices are read as what they are meant to be, with elements of a deviation of about 1/√columns.
func TestDummyMatricesKeepSize(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	const name, count, cols = "q_proj.weight", 80, 1024
	for _, scheme := range []op.Scheme{op.SchemeBF16, op.SchemeQ8_0, op.SchemeQ4_0, op.SchemeF8, op.SchemeF8Block, op.SchemeNVFP4, op.SchemeQ5_0, op.SchemeQ4_K, op.SchemeQ6_K} {
		c, err := dummy.New(config, []weights.Want{{Name: name, Shape: []int64{count, cols}}}, dummy.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		w, rows, err := place(c, 1, cols, func(int32) []model.Part { return []model.Part{{Name: name, Rows: count}} })
		if err != nil || w.Scheme != scheme {
			t.Errorf("%s: loaded as %s, %v", scheme, w.Scheme, err)
			continue
		}
		sum, squares := 0.0, 0.0
		for _, row := range rows {
			for _, v := range row {
				sum += float64(v)
				squares += float64(v) * float64(v)
			}
		}
		mean, deviation := sum/(count*cols), math.Sqrt(squares/(count*cols))
		if want := 1.0 / 32; math.Abs(deviation-want) > 0.05*want || math.Abs(mean) > 0.12*want {
			t.Errorf("%s: mean %v, deviation %v; want 0 and %v", scheme, mean, deviation, want)
		}
	}
}

// Parts of one matrix that cannot share it.
func TestStacksThatDoNotFit(t *testing.T) {
	cases := []struct {
		name, config string
		tensors      []weights.Tensor
		want         string
	}{
		{"two schemes", `{}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 24, 32), f32("q.weight_scale", []float32{1}), bf16("k.weight", make([]float32, 256), 8, 32),
		}, "k.weight is stored as bf16, others of the same stack as f8"},
		{"two schemes, said to be one", `{"quantization_config": {"quant_method": "fp8"}}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 24, 32), f32("q.weight_scale", []float32{1}), bf16("k.weight", make([]float32, 256), 8, 32),
		}, "k.weight is stored as bf16, others of the same stack as f8 (its configuration says: fp8 by quant_method fp8)"},
		{"blocks across parts", `{}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 24, 32), f32("q.weight_scale_inv", []float32{1}, 1, 1),
			repeated("k.weight", tensor.F8_E4M3, one, 8, 32), f32("k.weight_scale_inv", []float32{1}, 1, 1),
		}, "k.weight comes after rows that are no multiple of 16"},
		{"the second cannot be read", `{}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 24, 32), f32("q.weight_scale", []float32{1}), repeated("k.weight", tensor.F8_E4M3, one, 8, 32),
		}, "kernels: k.weight is F8_E4M3 without a scale"},
		{"the first cannot be read", `{}`, []weights.Tensor{
			repeated("q.weight", tensor.F8_E4M3, one, 24, 32), repeated("k.weight", tensor.F8_E4M3, one, 8, 32), f32("k.weight_scale", []float32{1}),
		}, "kernels: q.weight is F8_E4M3 without a scale"},
	}
	for _, c := range cases {
		_, _, err := place(newMemory(t, c.config, c.tensors...), 1, 32, two(24, 8))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "; ") {
			t.Errorf("%s: got %v, want one error with %q", c.name, err, c.want)
		}
	}
}

// Whatever types and shapes the tensors of a quantised linear have, loading gives rows or an error.
func FuzzStorage(f *testing.F) {
	f.Add(uint16(32), uint16(32), []byte{9, 32, 32, 2, 0, 0})
	f.Add(uint16(32), uint16(32), []byte{22, 32, 16, 9, 32, 2, 2, 1, 0})
	for _, kind := range []tensor.Type{tensor.Q5_0, tensor.Q4_K, tensor.Q6_K, tensor.Q5_K} {
		f.Add(uint16(31), uint16(255), []byte{byte(kind), 255, 254})
	}
	names := []string{"q.weight", "q.weight_scale", "q.weight_scale_2", "q.weight_scale_inv", "q.weight_packed", "q.weight_global_scale", "q.qweight"}
	f.Fuzz(func(t *testing.T, rows, cols uint16, choice []byte) {
		rows, cols = rows%80+1, cols%300+1
		var tensors []weights.Tensor
		for i, name := range names {
			if len(choice) < 3*i+3 {
				break
			}
			kind, shape := tensor.Type(choice[3*i]), []int64{}
			for _, n := range choice[3*i+1 : 3*i+3] {
				switch n {
				case 0:
				case 255:
					shape = append(shape, int64(rows))
				case 254:
					shape = append(shape, int64(cols))
				case 253:
					shape = append(shape, int64(cols)/2)
				case 252:
					shape = append(shape, int64(cols)/16)
				default:
					shape = append(shape, int64(n)%40)
				}
			}
			if kind == 0 || kind > tensor.IQ4_NL {
				continue
			}
			if _, err := kind.Bytes(shape); err == nil {
				tensors = append(tensors, repeated(name, kind, choice[0], shape...))
			}
		}
		m := newMemory(t, `{}`, tensors...)
		_, got, err := place(m, 1, int32(cols), func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: int32(rows)}} })
		if err == nil && len(got) != int(rows) {
			t.Errorf("%d rows and no error, want %d", len(got), rows)
		}
	})
}
