package gguf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// part is a file of one tensor that says it is part no of count, with total tensors in all.
func part(no, count uint16, total uint32, tensor string) string {
	b := start(3, 1, 3).key(keyPart, kindUint16).raw(string([]byte{byte(no), byte(no >> 8)})).
		key(keyParts, kindUint16).raw(string([]byte{byte(count), byte(count >> 8)})).key(keyPartTensors, kindInt32).u32(total)
	return b.info(tensor, f32, 0, 2).data(8)
}

func writeAll(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestParts(t *testing.T) {
	empty := start(3, 0, 2).key(keyPart, kindUint32).u32(0).key(keyParts, kindUint32).u32(3).String()
	cases := []struct {
		name  string
		files map[string]string
		open  string
		want  string // tensors
		err   string
	}{
		{"two", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": part(1, 2, 2, "b")}, "m-00001-of-00002.gguf", "[a b]", ""},
		{"upper case", map[string]string{"m-00001-of-00002.GGUF": part(0, 2, 2, "a"), "m-00002-of-00002.GGUF": part(1, 2, 2, "b")}, "m-00001-of-00002.GGUF", "[a b]", ""},
		{"no ending", map[string]string{"m-00001-of-00002": part(0, 2, 2, "a"), "m-00002-of-00002": part(1, 2, 2, "b")}, "m-00001-of-00002", "[a b]", ""},
		{"metadata alone in the first, no total", map[string]string{"m-00001-of-00003.gguf": empty, "m-00002-of-00003.gguf": part(1, 3, 0, "a"), "m-00003-of-00003.gguf": part(2, 3, 0, "b")},
			"m-00001-of-00003.gguf", "[a b]", ""},
		{"one part", map[string]string{"m.gguf": part(0, 1, 1, "a")}, "m.gguf", "[a]", ""},
		{"count of 0", map[string]string{"m.gguf": part(0, 0, 1, "a")}, "m.gguf", "[a]", ""},
		{"the second", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": part(1, 2, 2, "b")}, "m-00002-of-00002.gguf", "",
			"part 2 of 2 (give the first, "},
		{"the second under another name", map[string]string{"x.gguf": part(1, 2, 2, "b")}, "x.gguf", "", "give the first, the one that ends in -00001-of-00002.gguf"},
		{"missing", map[string]string{"m-00001-of-00003.gguf": part(0, 3, 3, "a"), "m-00002-of-00003.gguf": part(1, 3, 3, "b")}, "m-00001-of-00003.gguf", "",
			"part 3 of 3 is missing: put m-00003-of-00003.gguf beside the first"},
		{"renamed", map[string]string{"m.gguf": part(0, 2, 2, "a")}, "m.gguf", "", "call it NAME-00001-of-00002.gguf"},
		{"name of another count", map[string]string{"m-00001-of-00004.gguf": part(0, 2, 2, "a")}, "m-00001-of-00004.gguf", "", "call it NAME-00001-of-00002.gguf"},
		{"tensor twice", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": part(1, 2, 2, "a")}, "m-00001-of-00002.gguf", "",
			"tensor a is in"},
		{"another total", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 9, "a"), "m-00002-of-00002.gguf": part(1, 2, 9, "b")}, "m-00001-of-00002.gguf", "",
			"the 2 parts hold 2 tensors, the first part says 9"},
		{"a part of another model", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": part(1, 5, 2, "b")}, "m-00001-of-00002.gguf", "",
			"says that it is part 2 of 5, wanted 2 of 2"},
		{"a part that is the first again", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": part(0, 2, 2, "a")}, "m-00001-of-00002.gguf", "",
			"says that it is part 1 of 2, wanted 2 of 2"},
		{"a part that is a whole file", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": oneTensor(f32, 0, 2).data(8)}, "m-00001-of-00002.gguf", "",
			"is no part: metadata key split.no: no such key"},
		{"a part that is a pointer", map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": "version https://git-lfs.github.com/spec/v1\n"}, "m-00001-of-00002.gguf", "",
			"part 2 of 2: "},
		{"no number", map[string]string{"m-00001-of-00002.gguf": start(3, 0, 1).key(keyParts, kindUint16).raw("\x02\x00").String()}, "m-00001-of-00002.gguf", "", "split.no: no such key"},
		{"2^63 parts", map[string]string{"m.gguf": start(3, 0, 1).key(keyParts, kindUint64).u64(1 << 63).String()}, "m.gguf", "", "does not fit into 63 bits"},
		{"2^63-1 parts", map[string]string{"m.gguf": start(3, 0, 1).key(keyParts, kindUint64).u64(math.MaxInt64).String()}, "m.gguf", "", "wanted at most 99999"},
		{"10000 parts, all missing", map[string]string{"m-00001-of-10000.gguf": part(0, 10000, 2, "a")}, "m-00001-of-10000.gguf", "", "part 2 of 10000 is missing"},
		{"negative count", map[string]string{"m.gguf": start(3, 0, 1).key(keyParts, kindInt32).u32(math.MaxUint32).String()}, "m.gguf", "", "split.count is -1"},
		{"number -1", map[string]string{"m.gguf": start(3, 0, 2).key(keyPart, kindInt64).u64(math.MaxUint64).key(keyParts, kindUint8).raw("\x02").String()}, "m.gguf", "", "this is part 0 of 2"},
		{"count is text", map[string]string{"m.gguf": start(3, 0, 1).key(keyParts, kindString).text("../x").String()}, "m.gguf", "", "split.count is string"},
		{"pieces of bytes", map[string]string{"m.gguf-split-a": part(0, 1, 1, "a")[:100]}, "m.gguf-split-a", "", "join them with `cat` into m.gguf"},
		{"a later piece of bytes", map[string]string{"m.gguf.part2of2": "x"}, "m.gguf.part2of2", "", "join them with `cat` into m.gguf"},
	}
	for _, c := range cases {
		folder := writeAll(t, c.files)
		f, err := Open(filepath.Join(folder, c.open))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.err)
			}
			if err == nil {
				f.Close()
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		size := 0
		for name, content := range c.files {
			size += len(content)
			if x, ok := f.Tensor(name); ok {
				t.Errorf("%s: found %v", c.name, x.Info)
			}
		}
		if got := fmt.Sprint(f.Names()); got != c.want || f.Files() != len(c.files) || f.Bytes() != int64(size) {
			t.Errorf("%s: tensors %s in %d files of %d bytes, want %s in %d of %d", c.name, got, f.Files(), f.Bytes(), c.want, len(c.files), size)
		}
		for _, name := range f.Names() {
			x, _ := f.Tensor(name)
			if string(x.Data) != "\x00\x01\x02\x03\x04\x05\x06\x07" {
				t.Errorf("%s: tensor %s holds %q", c.name, name, x.Data)
			}
			f.Release(x)
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestPartsBehindALink(t *testing.T) {
	folder := writeAll(t, map[string]string{"m-00001-of-00002.gguf": part(0, 2, 2, "a"), "m-00002-of-00002.gguf": part(1, 2, 2, "b")})
	link := filepath.Join(t.TempDir(), "model")
	if err := os.Symlink(filepath.Join(folder, "m-00001-of-00002.gguf"), link); err != nil {
		t.Fatal(err)
	}
	f, err := Open(link)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := fmt.Sprint(f.Names()); got != "[a b]" {
		t.Errorf("tensors %s, want [a b]", got)
	}
}

func TestPartName(t *testing.T) {
	cases := []struct{ name, want string }{ // empty: no part
		{"m-00001-of-00002.gguf", "[m-00001-of-00002.gguf m-00002-of-00002.gguf]"},
		{"-00002-of-00002", "[-00001-of-00002 -00002-of-00002]"},
		{"a/m-00001-of-00001.GGUF", "[a/m-00001-of-00001.GGUF]"},
		{"m-00003-of-00002.gguf", ""},
		{"m-00000-of-00002.gguf", ""},
		{"m-1-of-2.gguf", ""},
		{"m-00001-of-00002.gguf.part", ""},
		{"m.gguf", ""},
		{"", ""},
	}
	for _, c := range cases {
		got := ""
		if name, ok := ParsePartName(c.name); ok {
			got = fmt.Sprint(name.All())
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.name, got, c.want)
		}
	}
	names := []string{"a.gguf", "b-00002-of-00002.gguf", "b-00001-of-00002.gguf", "c.GGUF", "config.json", "d-00002-of-00003.gguf"}
	if got := fmt.Sprint(Pieces(names)); got != "[a.gguf b-00001-of-00002.gguf c.GGUF]" {
		t.Errorf("models: %s", got)
	}
}

func TestSaysWhatAFileIs(t *testing.T) {
	cases := []struct {
		content string
		is      error
		want    string
	}{
		{"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ErrMagic, "git lfs pull"},
		{"<!DOCTYPE html><html>", ErrMagic, "an HTML page"},
		{"", ErrMagic, "empty"},
		{"tjgg\x01\x00\x00\x00", ErrMagic, "GGJT"},
		{"\x1f\x8b\x08", ErrMagic, "gzip"},
		{start(3<<24, 0, 0).String(), ErrVersion, "big endian"},
		{start(1, 0, 0).String(), ErrVersion, "it says 1"},
		{start(9, 0, 0).String(), ErrVersion, "it says 9"},
		{oneTensor(f32, 0, 4).data(15), ErrTruncated, "the download did not finish"},
		{oneTensor(23, 0, 256).data(136), ErrType, "tensor a: unsupported tensor type IQ4_XS"},
	}
	for _, c := range cases {
		f, err := open(t, c.content)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %v and %q", c.content, err, c.is, c.want)
		}
		if err == nil {
			f.Close()
		}
	}
}

// Two files that claim to be parts of one model: whatever they hold, opening them ends and every tensor has its bytes.
func FuzzParts(f *testing.F) {
	f.Add([]byte(part(0, 2, 2, "a")), []byte(part(1, 2, 2, "b")))
	f.Add([]byte(part(0, 2, 9, "a")), []byte(part(0, 2, 2, "a")))
	f.Add([]byte(start(3, 0, 2).key(keyPart, kindUint8).raw("\x00").list(keyParts, kindUint64, 1).u64(2).String()), []byte("GGUF"))
	f.Add([]byte(start(3, 0, 1).key(keyParts, kindUint64).u64(1<<62).String()), []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		folder := writeAll(t, map[string]string{"m-00001-of-00002.gguf": string(first), "m-00002-of-00002.gguf": string(second)})
		file, err := Open(filepath.Join(folder, "m-00001-of-00002.gguf"))
		if err != nil {
			return
		}
		defer file.Close()
		for _, name := range file.Names() {
			x, ok := file.Tensor(name)
			if want, err := x.Type.Bytes(x.Shape); !ok || err != nil || want != int64(len(x.Data)) {
				t.Fatalf("tensor %v has %d bytes, want %d (%v)", x.Info, len(x.Data), want, err)
			}
		}
	})
}
