package safetensors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

func bytesTensor(name string, data string) tensor.Tensor {
	return tensor.Tensor{Info: tensor.Info{Name: name, Type: tensor.U8, Shape: []int64{int64(len(data))}}, Data: []byte(data)}
}

// openFolder opens the files that the folder's index names or, without one, its only file.
func openFolder(path string) (*Folder, error) {
	index, err := ReadIndex(path)
	if errors.Is(err, os.ErrNotExist) {
		return OpenFiles(path, SingleName)
	}
	if err != nil {
		return nil, err
	}
	return OpenIndexed(path, index)
}

func TestFolder(t *testing.T) {
	const two = `{"metadata":{},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}`
	cases := []struct {
		name  string
		index string
		want  string // part of the error or, where there is none, of the notes
	}{
		{"good", two, ""},
		{"no JSON", `{`, "unexpected end"},
		{"no weight_map", `{"metadata":{}}`, "weight_map is missing"},
		{"weight_map twice", `{"weight_map":{"a":"1.safetensors"},"weight_map":{}}`, "twice"},
		{"tensor twice", `{"weight_map":{"a":"1.safetensors","a":"2.safetensors"}}`, "twice"},
		{"missing shard", `{"weight_map":{"a":"1.safetensors","b":"3.safetensors"}}`, "3.safetensors, which model.safetensors.index.json names, is missing"},
		{"parent folder", `{"weight_map":{"a":"../../x.safetensors"}}`, "no plain name"},
		{"absolute", `{"weight_map":{"a":"/etc/x.safetensors"}}`, "no plain name"},
		{"backslash", `{"weight_map":{"a":"..\\x.safetensors"}}`, "no plain name"},
		{"no string", `{"weight_map":{"a":["1.safetensors"]}}`, "wanted a string"},
		{"pickle", `{"weight_map":{"a":"pytorch_model.bin"}}`, "no plain name"},
		{"tensor of no shard", `{"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"}}`, `differ about "c", 1 tensors`},
		{"tensor of no index", `{"weight_map":{"a":"1.safetensors"}}`, ""},
		{"tensor in another shard", `{"weight_map":{"a":"2.safetensors","b":"1.safetensors"}}`, `differ about "a", 2 tensors`},
	}
	for _, c := range cases {
		folder := t.TempDir()
		write := func(name string, tensors ...tensor.Tensor) {
			if err := Write(filepath.Join(folder, name), tensors...); err != nil {
				t.Fatal(err)
			}
		}
		write("1.safetensors", bytesTensor("a", "one"))
		write("2.safetensors", bytesTensor("b", "two"))
		write("model-inputscales.safetensors", bytesTensor("a", "not asked for"))
		if err := os.WriteFile(filepath.Join(folder, IndexName), []byte(c.index), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := openFolder(folder)
		said := fmt.Sprint(err)
		if err == nil {
			said = strings.Join(f.Notes(), "\n")
		}
		if c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s: got %s, want %q", c.name, said, c.want)
		}
		if err != nil {
			continue
		}
		if a, ok := f.Tensor("a"); !ok || string(a.Data) != "one" {
			t.Errorf("%s: tensor a is %q, %v; want one", c.name, a.Data, ok)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What files hold counts, whatever the index says of it, but a tensor that two of them hold needs the index to decide.
func TestIndexOfOtherFiles(t *testing.T) {
	cases := []struct{ name, index, want, note, fail string }{
		{"a tensor that it lacks", `{"a":"1.safetensors","c":"2.safetensors"}`, "x y z", `differ about "b", 1 tensors`, ""},
		{"the first of two", `{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}`, "x y z", "", ""},
		{"two hold it", `{"a":"1.safetensors","b":"1.safetensors","c":"3.safetensors"}`, "x y w", `differ about "b", 1 tensors`, ""},
		{"two hold it, the second counts", `{"a":"1.safetensors","b":"3.safetensors","c":"3.safetensors"}`, "x v w", `differ about "b", 1 tensors`, ""},
		{"two hold it, and nobody knows", `{"a":"1.safetensors","c":"3.safetensors"}`, "", "", `tensor "b" is in`},
	}
	for _, c := range cases {
		folder := t.TempDir()
		for name, tensors := range map[string][]tensor.Tensor{
			"1.safetensors": {bytesTensor("a", "x"), bytesTensor("b", "y")}, "2.safetensors": {bytesTensor("c", "z")},
			"3.safetensors": {bytesTensor("b", "v"), bytesTensor("c", "w")},
		} {
			if err := Write(filepath.Join(folder, name), tensors...); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, IndexName), []byte(`{"weight_map":`+c.index+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := openFolder(folder)
		if c.fail != "" || err != nil {
			if err == nil || c.fail == "" || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.fail)
			}
			continue
		}
		var got []string
		for _, name := range f.Names() {
			held, _ := f.Tensor(name)
			got = append(got, string(held.Data))
		}
		if notes := strings.Join(f.Notes(), "\n"); strings.Join(got, " ") != c.want || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: got %s and %q, want %s and %q", c.name, got, notes, c.want, c.note)
		}
		f.Close()
	}
}

func TestSingleFileFolder(t *testing.T) {
	folder := t.TempDir()
	if _, err := openFolder(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder: %v, want %v", err, os.ErrNotExist)
	}
	if err := Write(filepath.Join(folder, SingleName), bytesTensor("a", "x"), bytesTensor("b", "yz")); err != nil {
		t.Fatal(err)
	}
	f, err := openFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := fmt.Sprint(f.Names(), f.Files(), f.Bytes()); got != "[a b] 1 3" {
		t.Errorf("got %s, want [a b] 1 3", got)
	}
}

func TestWriteReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.safetensors")
	scalar := tensor.Tensor{Info: tensor.Info{Name: "s\"<é", Type: tensor.F32}, Data: []byte{0, 0, 128, 63}}
	matrix := tensor.Tensor{Info: tensor.Info{Name: "m", Type: tensor.BF16, Shape: []int64{2, 3}}, Data: []byte("abcdefghijkl")}
	if err := Write(path, scalar, matrix); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, want := range []tensor.Tensor{scalar, matrix} {
		got, ok := f.Tensor(want.Name)
		if !ok || got.String() != want.String() || string(got.Data) != string(want.Data) {
			t.Errorf("got %v %q, want %v %q", got.Info, got.Data, want.Info, want.Data)
		}
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteRefuses(t *testing.T) {
	good := bytesTensor("a", "x")
	short := bytesTensor("b", "x")
	short.Shape = []int64{2}
	block := tensor.Tensor{Info: tensor.Info{Name: "q", Type: tensor.Q8_0, Shape: []int64{32}}, Data: make([]byte, 34)}
	cases := []struct {
		name    string
		tensors []tensor.Tensor
		want    error
	}{
		{"twice", []tensor.Tensor{good, good}, ErrDuplicate},
		{"metadata", []tensor.Tensor{bytesTensor("__metadata__", "x")}, ErrDuplicate},
		{"size", []tensor.Tensor{short}, ErrTensorInvalidInfo},
		{"name", []tensor.Tensor{bytesTensor("a\xff", "x")}, ErrName},
		{"block type", []tensor.Tensor{block}, nil},
	}
	for _, c := range cases {
		folder := t.TempDir()
		err := Write(filepath.Join(folder, "out"), c.tensors...)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if left, _ := os.ReadDir(folder); len(left) != 0 {
			t.Errorf("%s: left behind: %v", c.name, left)
		}
	}
}
