package gguf

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// The blocks are random; the values are those of the Python package gguf (tools/testdata/gguf_blocks.py).
func TestDequantizeMatchesReference(t *testing.T) {
	golden, err := safetensors.Open(filepath.Join("testdata", "blocks.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	seen := 0
	for _, name := range golden.Names() {
		name, ok := strings.CutSuffix(name, ".blocks")
		if !ok {
			continue
		}
		seen++
		kind, ok := tensor.Parse(name)
		if !ok {
			t.Fatalf("no type %s", name)
		}
		blocks, _ := golden.Tensor(name + ".blocks")
		values, _ := golden.Tensor(name + ".values")
		got := make([]float32, values.Elements())
		if err := Dequantize(got, kind, blocks.Data); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			want := binary.LittleEndian.Uint32(values.Data[4*i:])
			if math.Float32bits(got[i]) != want {
				t.Fatalf("%s, value %d: got %v (%#08x), want %v (%#08x)", name, i, got[i], math.Float32bits(got[i]), math.Float32frombits(want), want)
			}
		}
	}
	if seen != len(dequantizers) {
		t.Errorf("%d types in the golden file, %d dequantisers", seen, len(dequantizers))
	}
}

// The oracle, which judges kernels, gives the same values but for the rounding of the reference to float32.
func TestOracleMatchesReference(t *testing.T) {
	golden, err := safetensors.Open(filepath.Join("testdata", "blocks.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	for _, scheme := range []op.Scheme{op.SchemeBF16, op.SchemeQ8_0, op.SchemeQ4_0, op.SchemeQ4_1, op.SchemeQ5_0, op.SchemeQ4_K, op.SchemeQ6_K} {
		name := strings.ToUpper(scheme.String())
		blocks, _ := golden.Tensor(name + ".blocks")
		values, ok := golden.Tensor(name + ".values")
		if !ok || scheme.RawBytes(1, values.Elements()) != int64(len(blocks.Data)) {
			t.Fatalf("%s: %d values in %d bytes of blocks", name, values.Elements(), len(blocks.Data))
		}
		got := make([]float64, values.Elements())
		oracle.Dequantise(got, scheme, blocks.Data)
		largest := 0.0
		for _, v := range got {
			largest = max(largest, math.Abs(v))
		}
		for i, v := range got {
			want := float64(math.Float32frombits(binary.LittleEndian.Uint32(values.Data[4*i:])))
			if !(math.Abs(v-want) <= 0x1p-23*largest) {
				t.Fatalf("%s, value %d: got %v, want %v", name, i, v, want)
			}
		}
	}
}

func TestDequantizeRefuses(t *testing.T) {
	cases := []struct {
		kind   tensor.Type
		values int
		bytes  int
	}{
		{tensor.Q4_0, 32, 17},
		{tensor.Q4_0, 31, 18},
		{tensor.Q4_0, 64, 18},
		{tensor.I32, 1, 4},
		{0, 1, 4},
		{255, 1, 4},
	}
	for _, c := range cases {
		if err := Dequantize(make([]float32, c.values), c.kind, make([]byte, c.bytes)); err == nil {
			t.Errorf("%d bytes of %v into %d values gave no error", c.bytes, c.kind, c.values)
		}
	}
}
