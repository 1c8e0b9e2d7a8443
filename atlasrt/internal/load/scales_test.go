package load_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// Scales have the shapes that are published, and no others of as many elements: those of columns are not those of rows.
func TestShapesOfScales(t *testing.T) {
	const method = `{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}`
	cases := []struct {
		rows, cols int64 // of the matrix
		name       string
		shape      []int64 // of the scales
		scheme     op.Scheme
		want       string // in the error
	}{
		{4, 32, "weight_scale", nil, op.SchemeF8, ""},
		{4, 32, "weight_scale", []int64{1}, op.SchemeF8, ""},
		{4, 32, "weight_scale", []int64{1, 1}, op.SchemeF8Block, ""}, // the only block
		{4, 32, "weight_scale", []int64{1, 1, 1, 1}, op.SchemeF8Block, ""},
		{4, 32, "weight_scale", []int64{4}, op.SchemeF8, ""},
		{4, 32, "weight_scale", []int64{4, 1}, op.SchemeF8, ""},
		{4, 32, "weight_scale", []int64{1, 4}, 0, "q.weight has scales of shape [1, 4]"},
		{4, 32, "weight_scale", []int64{4, 1, 1}, 0, "shape [4, 1, 1]"},
		{2, 256, "weight_scale_inv", []int64{1, 2}, op.SchemeF8Block, ""},
		{2, 256, "weight_scale", []int64{2, 1}, op.SchemeF8, ""},
		{512, 128, "weight_scale_inv", []int64{4, 1}, op.SchemeF8Block, ""},
		{512, 128, "weight_scale_inv", []int64{4, 1, 1, 1}, op.SchemeF8Block, ""}, // as ModelOpt writes FP8_PB_WO
		{512, 128, "weight_scale_inv", []int64{1, 4}, 0, "shape [1, 4]"},
		{512, 128, "weight_scale_inv", []int64{4}, 0, "shape [4]"},
		{512, 128, "weight_scale_inv", []int64{1, 1, 4, 1}, 0, "shape [1, 1, 4, 1]"},
		{128, 512, "weight_scale_inv", []int64{1, 1, 4, 1}, op.SchemeF8Block, ""},
		{128, 512, "weight_scale_inv", []int64{4, 1}, 0, "shape [4, 1]"},
		{512, 256, "weight_scale_inv", []int64{2, 4}, 0, "shape [2, 4]"},
	}
	for _, c := range cases {
		n := int64(1)
		for _, size := range c.shape {
			n *= size
		}
		m := newMemory(t, method, repeated("q.weight", tensor.F8_E4M3, one, c.rows, c.cols), f32("q."+c.name, make([]float32, n), c.shape...))
		w, _, err := place(m, 1, int32(c.cols), func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: int32(c.rows)}} })
		if w.Scheme != c.scheme || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v of a matrix of %d×%d: got %v and %v, want %v and %q", c.name, c.shape, c.rows, c.cols, w.Scheme, err, c.scheme, c.want)
		}
	}
}

// Experts have a factor each, however many of them are copied at once: staging memory is as large as the largest matrix.
func TestExpertFactors(t *testing.T) {
	for rows := range int32(40) {
		expertFactors(t, rows+1)
	}
}

func expertFactors(t *testing.T, largest int32) {
	t.Helper()
	tensors := []weights.Tensor{bf16("large.weight", make([]float32, 16*largest), int64(largest), 16)}
	for e := range 5 {
		for i, part := range []string{"gate", "up"} {
			name := fmt.Sprintf("%d.%s", e, part)
			tensors = append(tensors, repeated(name+".weight", tensor.U8, []byte{0x22, 0x44, 0x66}[e%3], 2, 8), repeated(name+".weight_scale", tensor.F8_E4M3, one, 2, 1),
				f32(name+".weight_scale_2", []float32{float32(10*e + i)}))
		}
	}
	_, rows, err := placeOn(oracle.New(op.F32), newMemory(t, `{}`, tensors...), 5, 16, func(e int32) []model.Part {
		return []model.Part{{Name: fmt.Sprintf("%d.gate.weight", e), Rows: 2}, {Name: fmt.Sprintf("%d.up.weight", e), Rows: 2}}
	}, func(s model.Source) { s.Matrix(16, model.Part{Name: "large.weight", Rows: largest}) })
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range rows {
		e, part := n/4, n%4/2
		if want := float32((10*e + part) << (e % 3)); row[0] != want || row[15] != want {
			t.Errorf("row %d is %v, want all %v", n, row, want)
		}
	}
}
