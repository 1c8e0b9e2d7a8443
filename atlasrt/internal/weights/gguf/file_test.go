package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// builder writes GGUF files, right or wrong.
type builder struct{ bytes []byte }

func start(version uint32, tensors, keys uint64) *builder {
	return (&builder{[]byte("GGUF")}).u32(version).u64(tensors).u64(keys)
}

func (b *builder) u32(v uint32) *builder {
	b.bytes = binary.LittleEndian.AppendUint32(b.bytes, v)
	return b
}

func (b *builder) u64(v uint64) *builder {
	b.bytes = binary.LittleEndian.AppendUint64(b.bytes, v)
	return b
}

func (b *builder) raw(s string) *builder {
	b.bytes = append(b.bytes, s...)
	return b
}

func (b *builder) text(s string) *builder { return b.u64(uint64(len(s))).raw(s) }

func (b *builder) key(name string, k kind) *builder { return b.text(name).u32(uint32(k)) }

func (b *builder) list(name string, k kind, count uint64) *builder {
	return b.key(name, kindArray).u32(uint32(k)).u64(count)
}

// info describes a tensor; dims are in the file's order, fastest first.
func (b *builder) info(name string, id uint32, offset uint64, dims ...uint64) *builder {
	b.text(name).u32(uint32(len(dims)))
	for _, d := range dims {
		b.u64(d)
	}
	return b.u32(id).u64(offset)
}

// data pads to the alignment and appends n bytes 0, 1, 2, …
func (b *builder) data(n int) string {
	for len(b.bytes)%32 != 0 {
		b.bytes = append(b.bytes, 0)
	}
	for i := range n {
		b.bytes = append(b.bytes, byte(i))
	}
	return string(b.bytes)
}

func (b *builder) String() string { return string(b.bytes) }

func oneTensor(id uint32, offset uint64, dims ...uint64) *builder {
	return start(3, 1, 0).info("a", id, offset, dims...)
}

func aligned(n uint32) *builder { return start(3, 0, 1).key("general.alignment", kindUint32).u32(n) }

const f32, q40, q50, q4k, q6k = 0, 2, 6, 12, 14

var cases = []struct {
	name string
	file string
	want error // nil: the file is good
}{
	{"empty", "", ErrMagic},
	{"other magic", "GGML" + strings.Repeat("\x00", 64), ErrMagic},
	{"only magic", "GGUF", ErrTruncated},
	{"version 1", start(1, 0, 0).String(), ErrVersion},
	{"version 4", start(4, 0, 0).String(), ErrVersion},
	{"big endian", start(3<<24, 0, 0).String(), ErrVersion},
	{"version 2", start(2, 0, 0).String(), nil},
	{"nothing inside", start(3, 0, 0).String(), nil},
	{"counts cut", start(3, 0, 0).String()[:20], ErrTruncated},
	{"2^63 tensors", start(3, 1<<63, 0).String(), ErrCount},
	{"2^63 keys", start(3, 0, 1<<63).String(), ErrCount},
	{"tensors that wrap", start(3, math.MaxUint64/24+1, 0).String(), ErrCount},
	{"a million tensors in no bytes", start(3, 1_000_000, 0).String(), ErrCount},
	{"a million keys in no bytes", start(3, 0, 1_000_000).String(), ErrTruncated},
	{"key of 2^63 bytes", start(3, 0, 1).u64(1 << 63).String(), ErrString},
	{"key of 2^64-1 bytes", start(3, 0, 1).u64(math.MaxUint64).raw("abc").String(), ErrString},
	{"key longer than the file", start(3, 0, 1).u64(60000).raw("abc").String(), ErrTruncated},
	{"key twice", start(3, 0, 2).key("a", kindUint8).raw("x").key("a", kindUint8).raw("x").String(), ErrDuplicate},
	{"value of kind 13", start(3, 0, 1).key("a", kindCount).u64(0).String(), ErrKind},
	{"string of 2^63 bytes", start(3, 0, 1).key("a", kindString).u64(1 << 63).String(), ErrString},
	{"string of 2 MiB", start(3, 0, 1).key("a", kindString).text(strings.Repeat("x", 2<<20)).String(), nil},
	{"bool of 2", start(3, 0, 1).key("a", kindBool).raw("\x02").String(), nil},
	{"array of 2^63", start(3, 0, 1).list("a", kindUint64, 1<<63).String(), ErrCount},
	{"array of 2^61 wraps", start(3, 0, 1).list("a", kindUint64, 1<<61+1).u64(0).String(), ErrCount},
	{"huge vocabulary in few bytes", start(3, 0, 1).list("tokenizer.ggml.tokens", kindString, 1<<30).text("a").String(), ErrCount},
	{"vocabulary cut", start(3, 0, 1).list("a", kindString, 2).text("abcdefgh").String(), ErrTruncated},
	{"array cut", start(3, 0, 1).list("a", kindUint64, 9).u64(1).u64(2).String(), ErrTruncated},
	{"array of arrays", start(3, 0, 1).list("a", kindArray, 1).u32(0).u64(0).String(), nil},
	{"array of arrays that is cut", start(3, 0, 1).list("a", kindArray, 2).u32(0).u64(0).u32(0).String(), ErrTruncated},
	{"2^63 arrays", start(3, 0, 1).list("a", kindArray, 1<<63).u32(0).u64(0).String(), ErrCount},
	{"arrays 8 deep", start(3, 0, 1).list("a", kindArray, 1).raw(strings.Repeat("\x09\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00", 6)).u32(0).u64(0).String(), nil},
	{"arrays 1000 deep", start(3, 0, 1).list("a", kindArray, 1).raw(strings.Repeat("\x09\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00", 1000)).String(), ErrKind},
	{"array of unknown kind", start(3, 0, 1).list("a", 77, 0).String(), ErrKind},
	{"alignment 0", aligned(0).String(), ErrAlignment},
	{"alignment 3", aligned(3).String(), ErrAlignment},
	{"alignment 2^31", aligned(1 << 31).String(), ErrAlignment},
	{"alignment 8192", aligned(8192).String(), nil},
	{"alignment 64", start(3, 2, 1).key("general.alignment", kindUint32).u32(64).info("a", f32, 0, 8).info("b", f32, 64, 8).data(160), nil},
	{"unaligned by 64", start(3, 2, 1).key("general.alignment", kindUint32).u32(64).info("a", f32, 0, 8).info("b", f32, 32, 8).data(160), ErrOffset},
	{"alignment 1", aligned(1).String(), nil},
	{"good", oneTensor(f32, 0, 3, 2).data(24), nil},
	{"good with spare data", oneTensor(f32, 32, 3, 2).data(100), nil},
	{"good block", oneTensor(q40, 0, 64, 2).data(72), nil},
	{"good Q5_0", oneTensor(q50, 0, 64, 2).data(88), nil},
	{"good Q4_K", oneTensor(q4k, 0, 512, 2).data(4 * 144), nil},
	{"good Q6_K", oneTensor(q6k, 0, 256, 2, 3).data(6 * 210), nil},
	{"half a block of Q4_K in a row", oneTensor(q4k, 0, 128, 2).data(144), ErrShape},
	{"Q6_K cut", oneTensor(q6k, 0, 256, 2).data(2*210 - 1), ErrTruncated},
	{"name of no bytes", start(3, 1, 0).info("", f32, 0, 1).data(4), ErrName},
	{"name of 65 bytes", start(3, 1, 0).info(strings.Repeat("a", 65), f32, 0, 1).data(4), ErrString},
	{"name with a zero", start(3, 1, 0).info("a\x00", f32, 0, 1).data(4), ErrName},
	{"name not UTF-8", start(3, 1, 0).info("a\xff", f32, 0, 1).data(4), ErrName},
	{"no dimension", oneTensor(f32, 0).data(8), nil},
	{"five dimensions", oneTensor(f32, 0, 1, 1, 1, 1, 1).data(4), ErrShape},
	{"2^32-1 dimensions", start(3, 1, 0).text("a").u32(math.MaxUint32).data(64), ErrShape},
	{"dimension 0", oneTensor(f32, 0, 0, 2).data(8), nil},
	{"dimension 2^63", oneTensor(f32, 0, 1<<63).data(8), ErrShape},
	{"product overflows", oneTensor(f32, 0, 1<<32, 1<<32).data(8), ErrOverflow},
	{"product wraps to 4", oneTensor(f32, 0, 1<<62+1, 4).data(16), ErrOverflow},
	{"bytes overflow", oneTensor(f32, 0, 1<<62).data(16), ErrOverflow},
	{"block does not divide the row", oneTensor(q40, 0, 33, 32).data(594), ErrShape},
	{"unknown type", oneTensor(99, 0, 1).data(4), ErrType},
	{"known type that is not read", oneTensor(10, 0, 256).data(84), ErrType},
	{"removed type", oneTensor(4, 0, 32).data(84), ErrType},
	{"offset unaligned", oneTensor(f32, 4, 1).data(64), ErrOffset},
	{"offset after the file", oneTensor(f32, 1<<20, 1).data(64), ErrTruncated},
	{"offset and size wrap", oneTensor(f32, math.MaxUint64-31, 16).data(64), ErrOffset},
	{"cut by one", oneTensor(f32, 0, 4).data(15), ErrTruncated},
	{"overlap", start(3, 2, 0).info("a", f32, 0, 16).info("b", f32, 32, 8).data(64), ErrOffset},
	{"tensor twice", start(3, 2, 0).info("a", f32, 0, 8).info("a", f32, 32, 8).data(64), ErrDuplicate},
	{"description cut", start(3, 1, 0).raw(strings.Repeat("\x01", 20)).String(), ErrCount},
	{"dimensions cut", start(3, 1, 0).text("abcdef").u32(4).u64(1).u64(1).String(), ErrTruncated},
	{"no padding, no data", start(3, 1, 0).info("a", f32, 0, 1).String(), ErrTruncated},
}

func open(t testing.TB, content string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(path)
}

func TestHostileFiles(t *testing.T) {
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

func TestShapesAreRowMajor(t *testing.T) {
	f, err := open(t, start(3, 2, 0).info("experts", q40, 0, 32, 3, 2).info("norm", f32, 128, 2).data(140))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := fmt.Sprint(f.Names()); got != "[experts norm]" {
		t.Errorf("names: %s", got)
	}
	experts, _ := f.Tensor("experts")
	if got := experts.String(); got != "experts Q4_0 [2, 3, 32]" || len(experts.Data) != 108 || experts.Data[1] != 1 {
		t.Errorf("got %s with %d bytes", got, len(experts.Data))
	}
	norm, _ := f.Tensor("norm")
	if got := norm.String(); got != "norm F32 [2]" || norm.Data[0] != 128 {
		t.Errorf("got %s, first byte %d", got, norm.Data[0])
	}
	f.Release(experts)
	if _, ok := f.Tensor("none"); ok {
		t.Error("tensor none was found")
	}
}

func TestMetadata(t *testing.T) {
	content := start(3, 0, 14).
		list("one", kindUint16, 1).raw("\x07\x00").
		list("none at all", kindUint8, 0).
		key("on", kindUint8).raw("\x01").
		list("halves", kindFloat64, 2).u64(math.Float64bits(0.5)).u64(math.Float64bits(-0.5)).
		list("nested", kindArray, 1).u32(uint32(kindUint8)).u64(2).raw("ab").
		key("u8", kindUint8).raw("\xff").
		key("i32", kindInt32).u32(0xfffffffe).
		key("u64", kindUint64).u64(math.MaxUint64).
		key("f32", kindFloat32).u32(math.Float32bits(1e-5)).
		key("nan", kindFloat64).u64(math.Float64bits(math.NaN())).
		key("yes", kindBool).raw("\x01").
		key("text", kindString).text("héllo\xff").
		list("words", kindString, 2).text("a").text("").
		list("types", kindInt32, 2).u32(3).u32(0xffffffff).String()
	f, err := open(t, content)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := []struct {
		got  func() (string, error)
		want string
		err  string
	}{
		{show(f.Int, "u8"), "255", ""},
		{show(f.Int, "i32"), "-2", ""},
		{show(f.Int, "u64"), "", "metadata key u64: 18446744073709551615 does not fit"},
		{show(f.Int, "text"), "", "metadata key text is string, wanted an integer"},
		{show(f.Int, "types"), "", "metadata key types is array of 2 int32, wanted an integer"},
		{show(f.Int, "none"), "", "metadata key none: no such key"},
		{show(f.Float, "f32"), fmt.Sprint(float64(float32(1e-5))), ""},
		{show(f.Float, "nan"), "", "no finite number"},
		{show(f.Float, "u8"), "255", ""},
		{show(f.Float, "one"), "7", ""},
		{show(f.Float, "text"), "", "metadata key text is string, wanted a float"},
		{show(f.Int, "one"), "7", ""},
		{show(f.Int, "none at all"), "", "metadata key none at all is array of 0 uint8, wanted an integer"},
		{show(f.Strings, "none at all"), "[]", ""},
		{show(f.Bool, "on"), "true", ""},
		{show(f.Floats, "halves"), "[0.5 -0.5]", ""},
		{show(f.Floats, "types"), "[3 -1]", ""},
		{show(f.Floats, "words"), "", "wanted an array of numbers"},
		{show(f.Ints, "nested"), "", "metadata key nested is array of 1 array, wanted an array of integers"},
		{show(f.Int, "nested"), "", "metadata key nested is array of 1 array, wanted an integer"},
		{show(f.Bool, "yes"), "true", ""},
		{show(f.Bool, "u8"), "", "wanted a bool"},
		{show(f.String, "text"), "héllo\xff", ""},
		{show(f.String, "words"), "", "wanted a string"},
		{show(f.Strings, "words"), "[a ]", ""},
		{show(f.Strings, "text"), "", "wanted an array of strings"},
		{show(f.Ints, "types"), "[3 -1]", ""},
		{show(f.Ints, "u8"), "", "wanted an array of integers"},
	}
	for _, c := range cases {
		got, err := c.got()
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("got %q, %v; want %q, error %q", got, err, c.want, c.err)
		}
	}
	if _, err := f.Int("none"); !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v, want %v", err, ErrAbsent)
	}
	if !f.Has("u8") || f.Has("none") || len(f.Keys()) != 14 || f.Len("words") != 2 || f.Len("u8") != 0 || f.Len("none") != 0 || !f.IsFloat32("f32") || f.IsFloat32("nan") {
		t.Errorf("keys: %v", f.Keys())
	}
}

func show[T any](get func(string) (T, error), key string) func() (string, error) {
	return func() (string, error) {
		v, err := get(key)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(v), nil
	}
}

func TestRealFile(t *testing.T) {
	f, err := Open(testdata.Cache(t, "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tokens, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil || len(tokens) != 49152 || tokens[1] != "<|im_start|>" {
		t.Errorf("%d tokens, %v", len(tokens), err)
	}
	counts := map[tensor.Type]int{}
	for _, name := range f.Names() {
		x, _ := f.Tensor(name)
		counts[x.Type]++
		values := make([]float32, x.Elements())
		if err := Dequantize(values, x.Type, x.Data); err != nil {
			t.Errorf("%v: %v", x.Info, err)
		}
		if largest := slices.Max(values); !(largest > 0 && largest < 100) {
			t.Errorf("%v: largest value %v", x.Info, largest)
		}
		f.Release(x)
	}
	if counts[tensor.Q4_1] != 210 || counts[tensor.Q8_0] != 1 || counts[tensor.F32] != 61 {
		t.Errorf("tensors by type: %v; want 210 Q4_1, 1 Q8_0, 61 F32", counts)
	}
}

func FuzzGGUF(f *testing.F) {
	for _, c := range cases {
		if len(c.file) < 1<<16 {
			f.Add([]byte(c.file))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := open(t, string(content))
		if err != nil {
			return
		}
		defer file.Close()
		total := 0
		for _, name := range file.Names() {
			x, ok := file.Tensor(name)
			if want, err := x.Type.Bytes(x.Shape); !ok || err != nil || want != int64(len(x.Data)) {
				t.Fatalf("tensor %v has %d bytes, want %d (%v)", x.Info, len(x.Data), want, err)
			}
			total += len(bytes.Clone(x.Data)) // touches every byte
		}
		if total > len(content) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(content))
		}
		for _, key := range file.Keys() {
			// Each either gives a value or an error that names the key.
			_, err1 := file.Int(key)
			_, err2 := file.Float(key)
			_, err3 := file.Bool(key)
			_, err4 := file.String(key)
			_, err5 := file.Strings(key)
			_, err6 := file.Ints(key)
			_, err7 := file.Floats(key)
			for _, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
				if err != nil && !strings.Contains(err.Error(), key) {
					t.Fatalf("key %q: the error does not name it: %v", key, err)
				}
			}
		}
	})
}
