package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// file is a file with this header and this many zero bytes of data.
func file(header string, data int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + strings.Repeat("\x00", data)
}

func length(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

var cases = []struct {
	name string
	file string
	want error // nil: the file is good
}{
	{"empty", "", ErrHeaderTooSmall},
	{"seven bytes", "1234567", ErrHeaderTooSmall},
	{"length 0", length(0), ErrInvalidHeaderJSON},
	{"length 1", length(1) + "{", ErrInvalidHeaderJSON},
	{"length 2^64-1", length(math.MaxUint64) + "{}", ErrHeaderTooLarge},
	{"length 10^8+1", length(100_000_001) + "{}", ErrHeaderTooLarge},
	{"length 10^8", length(100_000_000) + "{}", ErrInvalidHeaderLength},
	{"length one too many", length(3) + "{}", ErrInvalidHeaderLength},
	{"not UTF-8", file("{\"\xff\":1}", 0), ErrInvalidHeader},
	{"not JSON", file("{]", 0), ErrInvalidHeaderJSON},
	{"an array", file("[]", 0), ErrInvalidHeaderJSON},
	{"leading space", file(" {}", 0), ErrInvalidHeaderJSON},
	{"trailing spaces", file("{}   \n", 0), nil},
	{"trailing text", file("{}{}", 0), ErrInvalidHeaderJSON},
	{"no tensor", file("{}", 0), nil},
	{"only metadata", file(`{"__metadata__":{"format":"pt"}}`, 0), nil},
	{"metadata of numbers", file(`{"__metadata__":{"format":1}}`, 0), ErrInvalidHeaderJSON},
	{"metadata null", file(`{"__metadata__":null}`, 0), ErrInvalidHeaderJSON},
	{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`, 0), ErrDuplicate},
	{"metadata key twice", file(`{"__metadata__":{"a":"","a":""}}`, 0), ErrDuplicate},
	{"good", file(one("F32", "[2,3]", "[0,24]"), 24), nil},
	{"good scalar", file(one("F32", "[]", "[0,4]"), 4), nil},
	{"good empty", file(one("F32", "[0,3]", "[0,0]"), 0), nil},
	{"good F4", file(one("F4", "[2,3]", "[0,3]"), 3), nil},
	{"order of keys", file(`{"a":{"data_offsets":[0,1],"shape":[1],"dtype":"U8"}}`, 1), nil},
	{"tensors out of order", file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 3), nil},
	{"hole", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), ErrInvalidOffset},
	{"overlap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), ErrInvalidOffset},
	{"same bytes", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2), ErrInvalidOffset},
	{"first offset 1", file(one("U8", "[1]", "[1,2]"), 2), ErrInvalidOffset},
	{"end before start", file(one("U8", "[1]", "[0,-1]"), 2), ErrInvalidHeaderJSON},
	{"reversed", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}}`, 2), ErrInvalidOffset},
	{"offset after the file", file(one("U8", "[9]", "[0,9]"), 2), ErrMetadataIncompleteBuffer},
	{"product overflows", file(one("U8", "[4294967296,4294967296,4294967296]", "[0,8]"), 8), ErrValidationOverflow},
	{"bytes overflow", file(one("F64", "[1152921504606846976]", "[0,8]"), 8), ErrValidationOverflow},
	{"huge shape, 8 bytes", file(one("F32", "[1000000,1000000,1000000]", "[0,8]"), 8), ErrTensorInvalidInfo},
	{"negative dimension", file(one("U8", "[-1]", "[0,1]"), 1), ErrInvalidHeaderJSON},
	{"float dimension", file(one("U8", "[1.0]", "[0,1]"), 1), ErrInvalidHeaderJSON},
	{"dimension 2^63", file(one("U8", "[9223372036854775808]", "[0,1]"), 1), ErrInvalidHeaderJSON},
	{"nine dimensions", file(one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1), ErrRank},
	{"size differs", file(one("F32", "[2]", "[0,7]"), 7), ErrTensorInvalidInfo},
	{"half a byte", file(one("F4", "[3]", "[0,2]"), 2), ErrMisalignedSlice},
	{"trailing byte", file(one("U8", "[1]", "[0,1]"), 2), ErrMetadataIncompleteBuffer},
	{"cut by one", file(one("U8", "[2]", "[0,2]"), 1), ErrMetadataIncompleteBuffer},
	{"tensor twice", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), ErrDuplicate},
	{"dtype twice", file(`{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), ErrDuplicate},
	{"shape twice", file(`{"a":{"dtype":"U8","shape":[],"shape":[1],"data_offsets":[0,1]}}`, 1), ErrDuplicate},
	{"unknown dtype", file(one("F128", "[1]", "[0,16]"), 16), ErrInvalidHeaderJSON},
	{"GGUF dtype", file(one("Q4_0", "[32]", "[0,18]"), 18), ErrInvalidHeaderJSON},
	{"three offsets", file(one("U8", "[1]", "[0,1,1]"), 1), ErrInvalidHeaderJSON},
	{"no offsets", file(`{"a":{"dtype":"U8","shape":[1]}}`, 1), ErrInvalidHeaderJSON},
	{"unknown key", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":{"y":[[[]]]}}}`, 1), ErrInvalidHeaderJSON},
	{"tensor null", file(`{"a":null}`, 0), ErrInvalidHeaderJSON},
	{"deep", file(`{"a":`+strings.Repeat("[", 100_000), 0), ErrInvalidHeaderJSON},
	{"control character", file(`{"a\u0007":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), ErrName},
	{"long name", file(`{"`+strings.Repeat("a", 513)+`":{}}`, 1), ErrName},
	{"header cut", length(20) + `{"a":{"dtype":"U8","`, ErrInvalidHeaderJSON},
}

func open(t testing.TB, content string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(path)
}

func TestRules(t *testing.T) {
	for _, c := range cases {
		f, err := open(t, c.file)
		if !errors.Is(err, c.want) || (c.want == nil && err != nil) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			f.Close()
		}
	}
}

func TestGoodFile(t *testing.T) {
	content := file(`{"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"I16","shape":[1],"data_offsets":[0,2]}}`, 0) + "xyz"
	f, err := open(t, content)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := fmt.Sprint(f.Names(), f.Metadata()); got != "[a b] map[k:v]" {
		t.Errorf("names and metadata: %s", got)
	}
	b, ok := f.Tensor("b")
	if !ok || b.String() != "b U8 [1]" || string(b.Data) != "z" {
		t.Errorf("tensor b: %v %q %v", b.Info, b.Data, ok)
	}
	if _, ok := f.Tensor("c"); ok {
		t.Error("tensor c was found")
	}
}

// A header of many tensors must cost time and memory in proportion to its bytes.
func TestManyTensors(t *testing.T) {
	header := func(n int) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"model.layers.0.mlp.experts.%d.gate_proj.weight":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, i, i, i+1)
		}
		return b.String() + "}"
	}
	content := header(100_000)
	var before, after runtime.MemStats
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, []byte(file(content, 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runtime.ReadMemStats(&after)
	// Allocations stand for time, which a busy machine would make a matter of luck.
	if grew := after.Mallocs - before.Mallocs; grew > 12*100_000 {
		t.Errorf("100000 tensors took %d allocations, want at most 12 each", grew)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grew := int64(after.HeapAlloc) - int64(before.HeapAlloc); grew > 3*int64(len(content)) {
		t.Errorf("100000 tensors keep %d bytes, the header has %d; want at most three times that", grew, len(content))
	}
	if got := len(f.Names()); got != 100_000 {
		t.Errorf("%d names, want 100000", got)
	}

	if testing.Short() {
		return
	}
	long := strings.Repeat(`"":{"dtype":"U8","shape":[],"data_offsets":[0,0]},`, 1_100_000)
	if _, err := open(t, file("{"+long[:len(long)-1]+"}", 0)); !errors.Is(err, ErrTooManyTensors) {
		t.Errorf("1100000 tensors: %v, want %v", err, ErrTooManyTensors)
	}
}

func TestTruncatedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	content := file(one("U8", "[1048576]", "[0,1048576]"), 1<<20)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	tensor, _ := f.Tensor("a")
	if err := mapping.Copy(make([]byte, 1<<20), tensor.Data); err == nil {
		t.Error("copying a truncated tensor gave no error")
	}
}

func TestGoldenFiles(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testdata.Shared(t, "golden"), "*", "*.safetensors"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range f.Names() {
			tensor, ok := f.Tensor(name)
			if err := mapping.Copy(make([]byte, len(tensor.Data)), tensor.Data); !ok || err != nil {
				t.Errorf("%s: tensor %s: %v, %v", path, name, ok, err)
			}
			f.Release(tensor)
		}
		f.Close()
	}
}

func FuzzHeader(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.file))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := open(t, string(content))
		if err != nil {
			return
		}
		defer file.Close()
		total := 0
		for _, name := range file.Names() {
			tensor, ok := file.Tensor(name)
			if !ok {
				t.Fatalf("tensor %q of Names is not found", name)
			}
			if want, err := tensor.Type.Bytes(tensor.Shape); err != nil || want != int64(len(tensor.Data)) {
				t.Fatalf("tensor %v has %d bytes, want %d (%v)", tensor.Info, len(tensor.Data), want, err)
			}
			total += len(tensor.Data)
		}
		if header := binary.LittleEndian.Uint64(content); uint64(total)+8+header != uint64(len(content)) {
			t.Fatalf("%d bytes of tensors and %d of header in a file of %d", total, header, len(content))
		}
	})
}
