package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/cuda/image"
)

// What a manifest says of a launch is what the device reads of it.
func TestAnImageSaysHowKernelsAreLaunched(t *testing.T) {
	root, build := gpuTree(t)
	if code := run(context.Background(), build, io.Discard, os.Stderr); code != exitOK {
		t.Fatalf("the build's exit code is %d", code)
	}
	packed, err := os.ReadFile(filepath.Join(root, "generated/toygpu/blob/image.zst"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	i, err := image.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]image.Entry{
		"atlas_linear_0": {Block: [3]uint32{64, 1, 1}, Programmatic: true},
		"atlas_linear_1": {Block: [3]uint32{256, 1, 1}, SharedBytes: 1024, L1: true},
	}
	for _, e := range i.Entries {
		w, ok := want[e.Name]
		if !ok {
			continue
		}
		delete(want, e.Name)
		if w.Name, w.Unit = e.Name, e.Unit; e != w {
			t.Errorf("got %+v, want %+v", e, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("the image lacks %v", want)
	}
}
