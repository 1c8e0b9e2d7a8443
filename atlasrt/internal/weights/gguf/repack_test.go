package gguf

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Blocks of another type have the values of those that they were made of, but for what rounding a scale and a minimum to f16 moves.
func TestRepackKeepsValues(t *testing.T) {
	golden, err := safetensors.Open(filepath.Join("testdata", "blocks.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	for kinds := range repackers {
		from, to := kinds[0], kinds[1]
		blocks, ok := golden.Tensor(from.String() + ".blocks")
		if !ok {
			t.Fatalf("no blocks of %v", from)
		}
		elements, bytes := from.Block()
		n := int64(len(blocks.Data)) / bytes * elements
		each, eachBytes := to.Block()
		repacked, got, want := make([]byte, n/each*eachBytes), make([]float32, n), make([]float32, n)
		for i := range repacked {
			repacked[i] = 0xa5
		}
		if err := errors.Join(Repack(repacked, to, blocks.Data, from), Dequantize(got, to, repacked), Dequantize(want, from, blocks.Data)); err != nil {
			t.Fatalf("%v as %v: %v", from, to, err)
		}
		for i := range got {
			limit := 0.0
			if from == tensor.Q4_K {
				b := blocks.Data[int64(i)/256*144:]
				scale, minimum := scaleMin(b[4:16], i%256/32)
				scale, minimum = half(b)*scale, half(b[2:])*minimum
				limit = 0x1p-11*(15*math.Abs(float64(scale))+math.Abs(float64(minimum))) + 16*0x1p-25 // and half a step of a subnormal
			}
			if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= limit) {
				t.Fatalf("%v as %v, value %d: %v, want %v to within %v", from, to, i, got[i], want[i], limit)
			}
		}
	}
}

func TestRepackRefuses(t *testing.T) {
	large := make([]byte, 144) // 65504·63
	large[0], large[1], large[4] = 0xff, 0x7b, 63
	cases := []struct {
		from, to tensor.Type
		src, dst int
		first    []byte
		want     string
	}{
		{tensor.Q6_K, tensor.Q8_0, 210, 272, nil, "is not held by Q8_0"},
		{tensor.Q5_0, tensor.Q8_0, 21, 34, nil, "22 bytes give 34"},
		{tensor.Q4_K, tensor.Q4_1, 144, 159, nil, "144 bytes give 160"},
		{tensor.Q4_K, tensor.Q4_1, 144, 160, large, "which f16 does not hold"},
	}
	for _, c := range cases {
		src := make([]byte, c.src)
		copy(src, c.first)
		if err := Repack(make([]byte, c.dst), c.to, src, c.from); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v as %v: got %v, want an error with %q", c.from, c.to, err, c.want)
		}
	}
}
