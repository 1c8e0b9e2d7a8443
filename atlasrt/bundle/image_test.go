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
		want    string // part of the error; empty: none
	}{
		{"good", good, []Kernel{{Name: "a"}, {Name: "bc"}}, ""},
		{"not built", nil, nil, "not built (run `atlasc build --hw cpu-test`"},
		{"another hardware", image(t, "atlas image 1 cpu-other c0ffee 5eed\n", ""), nil, "holds kernels of cpu-other"},
		{"stale", image(t, "atlas image 1 cpu-test 0ddba11 5eed\n", ""), nil, "stale"},
		{"no image", []byte("hello"), nil, "no kernel image"},
		{"another format", []byte("atlas image 2 cpu-test c0ffee 5eed\n"), nil, "no kernel image"},
		{"a line without end", bytes.Repeat([]byte("x"), 1000), nil, "no kernel image"},
		{"cut", good[:len(good)-3], nil, "damaged"},
		{"a terabyte", []byte("atlas image 1 cpu-test c0ffee 5eed\n\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x01\x00\x00"), nil, "decompressed size exceeds"},
		{"absent kernel", good, []Kernel{{Name: "absent"}}, "no kernel absent"},
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
			b := &Bundle{Hardware: "cpu-test", Kernels: c.kernels, Contract: "c0ffee", Files: files}
			var folder fs.FS
			if override {
				folder, b.Files = files, fstest.MapFS{}
			}
			var d loader
			got, err := b.Load(&d, folder)
			switch {
			case c.want == "" && (err != nil || string(d.image) != "code" || len(got) != 2 || got[1] != 2):
				t.Errorf("%s: err %v, image %q, kernels %v", c.name, err, d.image, got)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
			}
		}
	}
}
