package bundle

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// loader is a device that only loads images.
type loader struct {
	device.Device
	image []byte
}

func (l *loader) Load(image []byte) (device.Module, error) {
	l.image = image
	return l, nil
}

func (l *loader) Kernel(name string) (op.Kernel, error) {
	if name == "absent" {
		return 0, errors.New("the image has no kernel absent")
	}
	return op.Kernel(len(name)), nil
}

// image makes an image file.
func image(t *testing.T, header, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(header)
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	z.Write([]byte(content))
	z.Close()
	return b.Bytes()
}

func TestLoadChecksWhatItIsGiven(t *testing.T) {
	good := image(t, "atlas image 1 cpu-test c0ffee 5eed\n", "code")
	cases := []struct {
		name    string
		file    []byte // nil: not built
		kernels []Kernel
		needs   []string
		want    string // part of the error; empty: none
	}{
		{"good", good, []Kernel{{Name: "a"}, {Name: "bc"}}, []string{"avx2"}, ""},
		{"not built", nil, nil, nil, "not built (run `atlasc build --hw cpu-test`"},
		{"another hardware", image(t, "atlas image 1 cpu-other c0ffee 5eed\n", ""), nil, nil, "holds kernels of cpu-other"},
		{"stale", image(t, "atlas image 1 cpu-test 0ddba11 5eed\n", ""), nil, nil, "stale"},
		{"no image", []byte("hello"), nil, nil, "no kernel image"},
		{"another format", []byte("atlas image 2 cpu-test c0ffee 5eed\n"), nil, nil, "no kernel image"},
		{"a line without end", bytes.Repeat([]byte("x"), 1000), nil, nil, "no kernel image"},
		{"cut", good[:len(good)-3], nil, nil, "damaged"},
		{"a terabyte", []byte("atlas image 1 cpu-test c0ffee 5eed\n\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x01\x00\x00"), nil, nil, "decompressed size exceeds"},
		{"absent kernel", good, []Kernel{{Name: "absent"}}, nil, "no kernel absent"},
		{"another processor", good, nil, []string{"avx512f", "avx2"}, "needs a processor with avx512f"},
	}
	for _, c := range cases {
		for _, override := range []bool{false, true} {
			files, name := fstest.MapFS{}, "blob/image.zst"
			if override {
				name = "cpu-test/image.zst"
			}
			if c.file != nil {
				files[name] = &fstest.MapFile{Data: c.file}
			}
			var got []op.Kernel
			var exact bool
			b := &Bundle{Hardware: "cpu-test", Needs: c.needs, Kernels: c.kernels, Contract: "c0ffee", Files: files,
				New: func(k []op.Kernel, has func(string) bool) Set {
					got, exact = k, has("exact")
					return nil
				}}
			var folder fs.FS
			if override {
				folder, b.Files = files, fstest.MapFS{}
			}
			var d loader
			_, err := Load(b, &d, "", []string{"avx2", "exact"}, folder)
			switch {
			case c.want == "" && (err != nil || string(d.image) != "code" || len(got) != 2 || got[1] != 2 || !exact):
				t.Errorf("%s: err %v, image %q, kernels %v, exact %v", c.name, err, d.image, got, exact)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
			}
		}
	}
}

func TestModel(t *testing.T) {
	made := ""
	set := func(name string) func([]op.Kernel, func(string) bool) Set {
		return func([]op.Kernel, func(string) bool) Set {
			made = name
			return nil
		}
	}
	b := &Bundle{Hardware: "cpu-test", Contract: "c0ffee", New: set(""), Models: map[string]func([]op.Kernel, func(string) bool) Set{},
		Files: fstest.MapFS{"blob/image.zst": {Data: image(t, "atlas image 1 cpu-test c0ffee 5eed\n", "code")}}}
	for _, name := range []string{"qwen3-8b", "qwen3-8", "smollm2-1.7b", "smollm2"} {
		b.Models[name] = set(name)
	}
	cases := []struct{ checkpoint, want string }{
		{"", ""},
		{"Qwen/Qwen3-8B", "qwen3-8b"},
		{"Qwen/Qwen3-8B-FP8", "qwen3-8b"},
		{"/models/Qwen3_8B/", "qwen3-8b"},
		{"qwen3-8b.gguf", "qwen3-8b"},
		{"Qwen/Qwen3-80B", ""},
		{"Qwen/Qwen3", ""},
		{"smollm2", "smollm2"},
		{"SmolLM2-1.7B-Instruct.Q4_1.gguf", "smollm2-1.7b"},
		{"SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2"},
		{"my-qwen3-8b", ""},
	}
	for _, c := range cases {
		made = "nothing"
		if _, err := Load(b, &loader{}, c.checkpoint, nil, nil); err != nil || made != c.want || b.Model(c.checkpoint) != c.want {
			t.Errorf("%q: got set %q and model %q, error %v, want %q", c.checkpoint, made, b.Model(c.checkpoint), err, c.want)
		}
	}
}

// swapping is a set that says which kernels it launches.
type swapping struct {
	Set
	kernels []op.Kernel
}

func (s *swapping) Swap(kernels []op.Kernel) { s.kernels = kernels }

func TestReload(t *testing.T) {
	b := &Bundle{Hardware: "cpu-test", Kernels: []Kernel{{Name: "a"}, {Name: "bc"}}, Contract: "c0ffee"}
	set := &swapping{kernels: []op.Kernel{7, 8}}
	folder := fstest.MapFS{"cpu-test/image.zst": {Data: image(t, "atlas image 1 cpu-test 0ddba11 5eed\n", "code")}}
	if err := Reload(b, &loader{}, set, folder); err == nil || set.kernels[0] != 7 {
		t.Errorf("an image of another contract: error %v, kernels %v", err, set.kernels)
	}
	folder["cpu-test/image.zst"].Data = image(t, "atlas image 1 cpu-test c0ffee 5eed\n", "code")
	if err := Reload(b, &loader{}, set, folder); err != nil || set.kernels[0] != 1 || set.kernels[1] != 2 {
		t.Errorf("got error %v, kernels %v", err, set.kernels)
	}
	if err := Reload(b, &loader{}, nil, folder); err == nil {
		t.Error("a set that cannot: want an error")
	}
}
