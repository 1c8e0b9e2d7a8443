package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

func floats(name string, shape []int64, values ...float32) Tensor {
	t := Tensor{Info: Info{Name: name, Type: tensor.F32, Shape: shape}}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

func openTensors(t *testing.T, tensors ...Tensor) Checkpoint {
	t.Helper()
	folder := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "config.json"), []byte("{}"), 0o600),
		safetensors.Write(filepath.Join(folder, safetensors.SingleName), tensors...)); err != nil {
		t.Fatal(err)
	}
	c, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCheckReportsEverything(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	c := openTensors(t,
		floats("good", []int64{2}, 1, 2),
		floats("scalar_scale", []int64{1}, 1),
		floats("shape", []int64{2}, 1, 2),
		floats("norm", []int64{2}, 1, nan),
		floats("block_scale", []int64{1, 2}, 1, inf),
		floats("filter", []int64{2, 1, 2}, 1, 1, nan, 1),
		floats("matrix", []int64{1, 2}, nan, nan),
	)
	wants := []Want{
		{Name: "good", Shape: []int64{2}, Types: []Type{tensor.BF16, tensor.F32}},
		{Name: "scalar_scale"},
		{Name: "gone", Shape: []int64{3, 4}},
		{Name: "shape", Shape: []int64{2, 1}},
		{Name: "norm", Shape: []int64{2}},
		{Name: "block_scale", Shape: []int64{1, 2}},
		{Name: "filter", Shape: []int64{2, 1, 2}},
		{Name: "matrix", Shape: []int64{1, 2}}, // large in a real model: scanned by those who copy it
		{Name: "matrix", Shape: []int64{1, 2}, Types: []Type{tensor.BF16}},
	}
	err := Check(c, wants)
	if !errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want one that wraps ErrMissing", err)
	}
	const want = `checkpoint does not fit the model:
gone [3, 4]: no such tensor in the checkpoint
shape is [2] in the checkpoint, the configuration wants [2, 1]
matrix is F32 in the checkpoint, wanted one of [BF16]
norm F32 [2]: element 1 is NaN or infinite: the file is damaged
block_scale F32 [1, 2]: element 1 is NaN or infinite: the file is damaged
filter F32 [2, 1, 2]: element 2 is NaN or infinite: the file is damaged`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if err := Check(c, wants[:2]); err != nil {
		t.Errorf("a good list: %v", err)
	}
	var many []Want
	for i := range 1000 {
		many = append(many, Want{Name: fmt.Sprint(i)})
	}
	if err := Check(c, many); err == nil || strings.Count(err.Error(), "\n") != maxReported+1 || !matches(err, "and 970 more") {
		t.Errorf("a thousand missing tensors: %v", err)
	}
}

func TestCheckUsed(t *testing.T) {
	c := openTensors(t, floats("a", nil, 1), floats("b", nil, 1), floats("mtp.c", nil, 1))
	c.Tensor("a")
	known := func(name string) bool { return strings.HasPrefix(name, "mtp.") }
	if err := CheckUsed(c, known); !matches(err, "b was not used") || matches(err, "mtp") {
		t.Errorf("got %v, want an error about b alone", err)
	}
	c.Tensor("b")
	if err := CheckUsed(c, known); err != nil {
		t.Error(err)
	}
}

func TestFinite(t *testing.T) {
	cases := []struct {
		kind Type
		good string // one element or block; the bad one follows it
		bad  string
	}{
		{tensor.F64, "\x00\x00\x00\x00\x00\x00\xf0\x3f", "\x00\x00\x00\x00\x00\x00\xf0\x7f"},
		{tensor.F32, "\xff\xff\x7f\x7f", "\x00\x00\x80\xff"},
		{tensor.BF16, "\x7f\x7f", "\x80\x7f"},
		{tensor.F16, "\xff\x7b", "\x01\xfc"},
		{tensor.F8_E4M3, "\x7e", "\xff"},
		{tensor.F8_E5M2, "\x7b", "\x7c"},
		{tensor.F8_E4M3FNUZ, "\x7f", "\x80"},
		{tensor.F8_E8M0, "\xfe", "\xff"},
		{tensor.Q4_0, "\x00\x3c" + strings.Repeat("\xff", 16), "\x00\x7c" + strings.Repeat("\x00", 16)},
		{tensor.Q4_1, "\x00\x3c\x00\x3c" + strings.Repeat("\xff", 16), "\x00\x3c\x00\x7c" + strings.Repeat("\x00", 16)},
		{tensor.Q8_0, "\x00\x3c" + strings.Repeat("\xff", 32), "\x00\x7e" + strings.Repeat("\x00", 32)},
		{tensor.Q6_K, strings.Repeat("\xff", 208) + "\x00\x3c", strings.Repeat("\x00", 208) + "\x00\xfc"},
	}
	for _, c := range cases {
		elements, _ := c.kind.Block()
		x := Tensor{Info: Info{Name: "x", Type: c.kind, Shape: []int64{elements}}, Data: []byte(c.good)}
		if err := Finite(x); err != nil {
			t.Errorf("%v, good: %v", c.kind, err)
		}
		x.Data = []byte(c.good + c.bad)
		if err := Finite(x); !matches(err, " 1 is NaN or infinite") {
			t.Errorf("%v, bad: %v; want place 1", c.kind, err)
		}
	}
	for at := range 80 {
		data := []byte(strings.Repeat("\xfe\x00\x7e\x80", 20))
		data[at] = 0x7f | byte(at)<<7
		if err := Finite(Tensor{Info: Info{Name: "x", Type: tensor.F8_E4M3, Shape: []int64{80}}, Data: data}); !matches(err, fmt.Sprintf("element %d is NaN", at)) {
			t.Errorf("NaN as element %d: %v", at, err)
		}
	}
	if err := Finite(Tensor{Info: Info{Name: "x", Type: tensor.U8}, Data: []byte{0xff}}); err != nil {
		t.Errorf("U8: %v", err)
	}
}
