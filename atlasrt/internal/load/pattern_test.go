package load_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// varied is a tensor whose bytes differ, each below a limit that keeps it finite.
func varied(name string, kind tensor.Type, limit int, shape ...int64) weights.Tensor {
	t := repeated(name, kind, 0, shape...)
	random := rand.New(rand.NewPCG(1, uint64(len(t.Data))))
	for i := range t.Data {
		t.Data[i] = byte(random.IntN(limit))
	}
	return t
}

// counting are small whole numbers, one after the other.
func counting(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i%100 + 1)
	}
	return values
}

// Rows that are taken by a pattern are those of the whole tensor, in every scheme; two parts may read one tensor.
func TestPatternsOfRows(t *testing.T) {
	const rows, cols = 192, 256
	blocks := `{"quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 128]}}`
	halves := bf16("q.weight", counting(rows*cols), rows, cols)
	halves.Type = tensor.F16
	cases := []struct {
		name    string
		config  string
		tensors []weights.Tensor
		scheme  op.Scheme
	}{
		{"bf16", `{}`, []weights.Tensor{bf16("q.weight", counting(rows*cols), rows, cols)}, op.SchemeBF16},
		{"f16", `{}`, []weights.Tensor{halves}, op.SchemeBF16},
		{"f32", `{}`, []weights.Tensor{f32("q.weight", counting(rows*cols), rows, cols)}, op.SchemeBF16},
		{"q4_0", `{}`, []weights.Tensor{varied("q.weight", tensor.Q4_0, 0x70, rows, cols)}, op.SchemeQ4_0},
		{"q6_k", `{}`, []weights.Tensor{varied("q.weight", tensor.Q6_K, 0x70, rows, cols)}, op.SchemeQ6_K},
		{"iq4_nl", `{}`, []weights.Tensor{varied("q.weight", tensor.IQ4_NL, 0x70, rows, cols)}, op.SchemeQ8_0},
		{"q5_k", `{}`, []weights.Tensor{varied("q.weight", tensor.Q5_K, 0x70, rows, cols)}, op.SchemeBF16},
		{"fp8 of a tensor", `{}`, []weights.Tensor{varied("q.weight", tensor.F8_E4M3, 0x7f, rows, cols), f32("q.weight_scale", []float32{3})}, op.SchemeF8},
		{"fp8 of rows", `{}`, []weights.Tensor{varied("q.weight", tensor.F8_E4M3, 0x7f, rows, cols), f32("q.weight_scale", counting(rows), rows, 1)}, op.SchemeF8},
		{"fp8 of blocks", blocks, []weights.Tensor{varied("q.weight", tensor.F8_E4M3, 0x7f, rows, cols), f32("q.weight_scale_inv", counting(12), 6, 2)}, op.SchemeF8Block},
		{"nvfp4", `{}`, []weights.Tensor{varied("q.weight", tensor.U8, 0x100, rows, cols/2), varied("q.weight_scale", tensor.F8_E4M3, 0x7f, rows, cols/16),
			f32("q.weight_scale_2", []float32{3})}, op.SchemeNVFP4},
	}
	patterns := []struct {
		name  string
		parts []model.Part
		rows  func(i int) int // of the tensor, by row of the matrix
	}{
		{"two halves of every 32", []model.Part{
			{Name: "q.weight", Rows: 96, From: model.Pattern{First: 0, Each: 16, Every: 32}},
			{Name: "q.weight", Rows: 96, From: model.Pattern{First: 16, Each: 16, Every: 32}},
		}, func(i int) int { return i/96*16 + i%96/16*32 + i%16 }},
		{"the middle of every 96", []model.Part{{Name: "q.weight", Rows: 64, From: model.Pattern{First: 48, Each: 32, Every: 96}}}, func(i int) int { return i/32*96 + 48 + i%32 }},
		{"all", []model.Part{{Name: "q.weight", Rows: 192, From: model.Pattern{First: 0, Each: 64, Every: 64}}}, func(i int) int { return i }},
		{"one row of every 3", []model.Part{{Name: "q.weight", Rows: 64, From: model.Pattern{First: 2, Each: 1, Every: 3}}}, func(i int) int { return 3*i + 2 }},
	}
	for _, c := range cases {
		m := newMemory(t, c.config, c.tensors...)
		_, all, err := place(m, 1, cols, func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: rows}} })
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, p := range patterns {
			w, got, err := place(m, 1, cols, func(int32) []model.Part { return p.parts })
			if c.scheme == op.SchemeF8Block && p.parts[0].From.Each == 1 {
				if err == nil || !strings.Contains(err.Error(), "q.weight gives rows 2 to 2 of every 3, which do not begin and end with the 16 that share scales in f8block") {
					t.Errorf("%s, %s: got %v", c.name, p.name, err)
				}
				continue
			}
			if err != nil || w.Scheme != c.scheme {
				t.Errorf("%s, %s: %s, %v", c.name, p.name, w.Scheme, err)
				continue
			}
			for i, row := range got {
				if !slices.Equal(row, all[p.rows(i)]) {
					t.Fatalf("%s, %s: row %d is not row %d of the tensor", c.name, p.name, i, p.rows(i))
				}
			}
		}
	}
}

// Elements of vectors are taken by patterns, too.
func TestPatternsOfVectors(t *testing.T) {
	m := newMemory(t, `{}`, f32("q.bias", counting(12), 12))
	parts := []model.Part{
		{Name: "q.bias", Rows: 6, From: model.Pattern{First: 0, Each: 2, Every: 4}},
		{Name: "q.bias", Rows: 6, From: model.Pattern{First: 2, Each: 2, Every: 4}, Plus: 0.5},
	}
	want := []float32{1, 2, 5, 6, 9, 10, 3.5, 4.5, 7.5, 8.5, 11.5, 12.5}
	d, set := host.New(0), oracle.New(op.F32)
	counter := load.NewCounter(set, load.Stored(m, set))
	counter.Vector(parts...)
	if err := counter.Err(); err != nil {
		t.Fatal(err)
	}
	if err := weights.Check(m, counter.Wants); err != nil {
		t.Fatal(err)
	}
	stream, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	loader, err := load.NewLoader(t.Context(), m, d, stream, set, counter)
	if err != nil {
		t.Fatal(err)
	}
	at := loader.Vector(parts...)
	if err := loader.Finish(); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 4*len(want))
	stream.Read(data, at)
	if got := f32("", want); !slices.Equal(data, got.Data) {
		t.Errorf("got bytes %v, want %v", data, got.Data)
	}
}

// A pattern that does not fit is an error that names the tensor and what is wrong.
func TestPatternsThatDoNotFit(t *testing.T) {
	cases := []struct {
		name string
		part model.Part
		want string
	}{
		{"none of any", model.Part{Name: "q.weight", Rows: 8, From: model.Pattern{Every: 4}}, "q.weight has no rows 0 to -1 of every 4"},
		{"behind the last", model.Part{Name: "q.weight", Rows: 8, From: model.Pattern{First: 3, Each: 2, Every: 4}}, "q.weight has no rows 3 to 4 of every 4"},
		{"before the first", model.Part{Name: "q.weight", Rows: 8, From: model.Pattern{First: -1, Each: 2, Every: 4}}, "q.weight has no rows -1 to 0 of every 4"},
		{"parts of groups", model.Part{Name: "q.weight", Rows: 7, From: model.Pattern{Each: 2, Every: 4}}, "q.weight cannot give 7 rows, 2 of every 4"},
		{"a tensor of other rows", model.Part{Name: "q.weight", Rows: 6, From: model.Pattern{Each: 2, Every: 4}}, "q.weight is [16, 32] in the checkpoint, the configuration wants [12, 32]"},
	}
	for _, c := range cases {
		m := newMemory(t, `{}`, bf16("q.weight", counting(16*32), 16, 32))
		if _, _, err := place(m, 1, 32, func(int32) []model.Part { return []model.Part{c.part} }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
	m := newMemory(t, `{}`, f32("q.bias", counting(16), 16))
	set := oracle.New(op.F32)
	counter := load.NewCounter(set, load.Stored(m, set))
	counter.Vector(model.Part{Name: "q.bias", Rows: 7, From: model.Pattern{Each: 2, Every: 4}})
	if err := counter.Err(); err == nil || !strings.Contains(err.Error(), "q.bias cannot give 7 rows") {
		t.Errorf("a vector: got %v", err)
	}
}
