package instance

import (
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// swapping is a set that says which kernels it launches.
type swapping struct {
	bundle.Set
	kernels []op.Kernel
}

func (s *swapping) Swap(kernels []op.Kernel) { s.kernels = kernels }

// loader is a device that only loads images. A kernel is as long as its name.
type loader struct{ device.Device }

func (l loader) Load([]byte) (device.Module, error) { return l, nil }

func (l loader) Kernel(name string) (op.Kernel, error) { return op.Kernel(len(name)), nil }

func TestReload(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	file := func(contract string) *fstest.MapFile {
		return &fstest.MapFile{Data: z.EncodeAll([]byte("code"), []byte("atlas image 1 cpu-test "+contract+" 5eed\n"))}
	}
	set := &swapping{kernels: []op.Kernel{7, 8}}
	target := &Target{Device: loader{}, Set: set, Bundle: &bundle.Bundle{
		Hardware: "cpu-test", Kernels: []bundle.Kernel{{Name: "a"}, {Name: "bc"}}, Contract: "c0ffee"}}
	folder := fstest.MapFS{"cpu-test/image.zst": file("0ddba11")}
	if err := target.reload(folder); err == nil || set.kernels[0] != 7 {
		t.Errorf("an image of another contract: error %v, kernels %v", err, set.kernels)
	}
	folder["cpu-test/image.zst"] = file("c0ffee")
	if err := target.reload(folder); err != nil || set.kernels[0] != 1 || set.kernels[1] != 2 {
		t.Errorf("got error %v, kernels %v", err, set.kernels)
	}
	target.Set = nil
	if err := target.reload(folder); err == nil {
		t.Error("a set that cannot: want an error")
	}
}
