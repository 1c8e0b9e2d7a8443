// Package gguftest makes GGUF files for tests.
package gguftest

import (
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// numbers are the types of tensors as files number them.
var numbers = map[tensor.Type]uint32{tensor.F32: 0, tensor.F16: 1, tensor.Q4_0: 2, tensor.Q8_0: 8, tensor.BF16: 30}

// Write writes a file with these tensors and keys: uint32 for an int, float32, bool, string, []string, []float32, []int32, []bool. It
// returns the file's path.
func Write(t testing.TB, keys map[string]any, tensors ...tensor.Tensor) string {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint64(le.AppendUint32([]byte("GGUF"), 3), uint64(len(tensors))), uint64(len(keys)))
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		b = appendValue(t, appendText(b, key), keys[key])
	}
	var data []byte
	for _, x := range tensors {
		number, ok := numbers[x.Type]
		if !ok {
			t.Fatalf("tensor %v: files of this type are not made", x.Info)
		}
		b = le.AppendUint32(appendText(b, x.Name), uint32(len(x.Shape)))
		for _, d := range slices.Backward(x.Shape) {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint64(le.AppendUint32(b, number), uint64(len(data)))
		data = append(data, x.Data...)
		data = append(data, make([]byte, -len(data)&31)...)
	}
	b = append(b, make([]byte, -len(b)&31)...)
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, append(b, data...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

func appendValue(t testing.TB, b []byte, value any) []byte {
	le := binary.LittleEndian
	list := func(kind uint32, n int) []byte {
		return le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 9), kind), uint64(n))
	}
	bit := func(on bool) byte { return map[bool]byte{true: 1}[on] }
	switch v := value.(type) {
	case int:
		b = le.AppendUint32(le.AppendUint32(b, 4), uint32(v))
	case float32:
		b = le.AppendUint32(le.AppendUint32(b, 6), math.Float32bits(v))
	case bool:
		b = append(le.AppendUint32(b, 7), bit(v))
	case string:
		b = appendText(le.AppendUint32(b, 8), v)
	case []string:
		b = list(8, len(v))
		for _, s := range v {
			b = appendText(b, s)
		}
	case []float32:
		b = list(6, len(v))
		for _, f := range v {
			b = le.AppendUint32(b, math.Float32bits(f))
		}
	case []int32:
		b = list(5, len(v))
		for _, n := range v {
			b = le.AppendUint32(b, uint32(n))
		}
	case []bool:
		b = list(7, len(v))
		for _, on := range v {
			b = append(b, bit(on))
		}
	default:
		t.Fatalf("no value of a file: %T", value)
	}
	return b
}
