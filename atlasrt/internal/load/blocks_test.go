package load_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// lacking has kernels for some schemes only.
type lacking struct {
	*oracle.Set
	has []op.Scheme
}

func (s lacking) PackedBytes(scheme op.Scheme, rows, cols int32) int64 {
	if !slices.Contains(s.has, scheme) {
		return 0
	}
	return s.Set.PackedBytes(scheme, rows, cols)
}

// Blocks are kept as they are, or where there are no kernels for them as others that hold them; else they become bf16. A line says so.
func TestBlocksOfOtherHardware(t *testing.T) {
	gpu := lacking{oracle.New(op.F32), []op.Scheme{op.SchemeBF16, op.SchemeQ8_0, op.SchemeQ4_0, op.SchemeQ4_1, op.SchemeQ6_K}}
	few := lacking{oracle.New(op.F32), []op.Scheme{op.SchemeBF16, op.SchemeQ4_0}}
	cases := []struct {
		kind                 tensor.Type
		everywhere, gpu, few op.Scheme
		off                  float64 // of an element and half the largest, on a GPU
	}{
		{tensor.Q4_0, op.SchemeQ4_0, op.SchemeQ4_0, op.SchemeQ4_0, 0},
		{tensor.Q5_0, op.SchemeQ5_0, op.SchemeQ8_0, op.SchemeBF16, 0},
		{tensor.Q4_K, op.SchemeQ4_K, op.SchemeQ4_1, op.SchemeBF16, 0x1p-11},
		{tensor.Q6_K, op.SchemeQ6_K, op.SchemeQ6_K, op.SchemeBF16, 0},
		{tensor.IQ4_NL, op.SchemeQ8_0, op.SchemeQ8_0, op.SchemeBF16, 0},
		{tensor.Q5_K, op.SchemeBF16, op.SchemeBF16, op.SchemeBF16, 0x1p-8}, // there are no kernels for it anywhere
	}
	part := func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: 32}} }
	for _, c := range cases {
		m := newMemory(t, `{}`, repeated("q.weight", c.kind, 0x24, 32, 256))
		want := make([]float32, 32*256)
		stored, err := m.Tensor("q.weight")
		if err := errors.Join(err, gguf.Dequantize(want, c.kind, stored.Data)); err != nil {
			t.Fatal(err)
		}
		most := 0.0
		for _, x := range want {
			most = max(most, math.Abs(float64(x)))
		}
		for _, on := range []struct {
			name   string
			set    bundle.Set
			scheme op.Scheme
			off    float64
		}{{"everywhere", oracle.New(op.F32), c.everywhere, 0}, {"on a GPU", gpu, c.gpu, c.off}, {"with few kernels", few, c.few, 0x1p-8}} {
			if on.scheme == op.SchemeBF16 {
				on.off = 0x1p-8
			}
			w, rows, err := placeOn(on.set, m, 1, 256, part)
			if err != nil || w.Scheme != on.scheme {
				t.Errorf("%v %s: kept as %s, %v; want %s", c.kind, on.name, w.Scheme, err, on.scheme)
				continue
			}
			for i, x := range want {
				got := rows[i/256][i%256]
				if d := math.Abs(float64(got - x)); d > on.off*(math.Abs(float64(x))+most/2)+0x1p-22*most {
					t.Fatalf("%v %s: element %d is %v, want %v", c.kind, on.name, i, got, x)
				}
			}
			counter := load.NewCounter(on.set, load.Stored(m, on.set))
			counter.Matrix(256, part(0)...)
			as := "as " + w.Scheme.String()
			if w.Scheme == op.SchemeBF16 {
				as = "rounded once to bf16"
			}
			lines := counter.Converted()
			if same := strings.EqualFold(c.kind.String(), w.Scheme.String()); same != (len(lines) == 0) || !same && !strings.Contains(lines[0], as) {
				t.Errorf("%v %s: it says %q", c.kind, on.name, lines)
			}
		}
	}
}

// A scale that does not fit is an error that names the tensor.
func TestBlocksThatDoNotFit(t *testing.T) {
	gpu := lacking{oracle.New(op.F32), []op.Scheme{op.SchemeBF16, op.SchemeQ4_1}}
	m := newMemory(t, `{}`, repeated("q.weight", tensor.Q4_K, 0x7b, 32, 256)) // 65376·59
	_, _, err := placeOn(gpu, m, 1, 256, func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: 32}} })
	if err == nil || !strings.Contains(err.Error(), "q.weight") || !strings.Contains(err.Error(), "which f16 does not hold") {
		t.Errorf("got %v, want an error that names the tensor", err)
	}
}

// A scheme without kernels is an error that names the tensor, the scheme, and those that have kernels.
func TestSchemesWithoutKernels(t *testing.T) {
	set := lacking{oracle.New(op.F32), []op.Scheme{op.SchemeBF16, op.SchemeF8}}
	m := newMemory(t, `{}`, repeated("q.weight", tensor.U8, 0x22, 32, 16), repeated("q.weight_scale", tensor.F8_E4M3, one, 32, 2), f32("q.weight_scale_2", []float32{3}))
	_, _, err := placeOn(set, m, 1, 32, func(int32) []model.Part { return []model.Part{{Name: "q.weight", Rows: 32}} })
	if want := "q.weight is stored as nvfp4, for which this hardware has no kernels (it has some for bf16, f8:"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
