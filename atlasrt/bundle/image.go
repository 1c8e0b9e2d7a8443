package bundle

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/klauspost/compress/zstd"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// imageLimit bounds what an image may grow to when it is unpacked.
const imageLimit = 512 << 20

// imageName is where Bundle.Files holds the compiled kernels.
const imageName = "blob/image.zst"

// Load puts b's kernels on d, in the order of b.Kernels. override, where it is not nil, holds <hardware>/image.zst and takes the place of
// what the program carries. Kernels that were loaded before stay on d.
func (b *Bundle) Load(d device.Device, override fs.FS) ([]op.Kernel, error) {
	image, err := b.image(override)
	if err != nil {
		return nil, err
	}
	module, err := d.Load(image)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Hardware, err)
	}
	kernels := make([]op.Kernel, len(b.Kernels))
	for i, k := range b.Kernels {
		if kernels[i], err = module.Kernel(k.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Hardware, err)
		}
	}
	return kernels, nil
}

// Built tells whether the program carries compiled kernels.
func (b *Bundle) Built() bool {
	_, err := fs.Stat(b.Files, imageName)
	return err == nil
}

// image reads, checks and unpacks the compiled kernels.
func (b *Bundle) image(override fs.FS) ([]byte, error) {
	rebuild := "run `atlasc build --hw " + b.Hardware + "`, then build the server again"
	files, name := b.Files, imageName
	if override != nil {
		files, name = override, b.Hardware+"/image.zst"
		rebuild = "run `atlasc build --hw " + b.Hardware + "`"
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("the kernels of %s are not built (%s)", b.Hardware, rebuild)
	}
	line, packed, ok := bytes.Cut(data, []byte("\n"))
	if !ok || len(line) > 256 {
		return nil, fmt.Errorf("%s is no kernel image (%s)", name, rebuild)
	}
	var hardware, contract, sources string
	if n, _ := fmt.Sscanf(string(line), "atlas image 1 %s %s %s", &hardware, &contract, &sources); n != 3 {
		return nil, fmt.Errorf("%s is no kernel image (%s)", name, rebuild)
	}
	if hardware != b.Hardware {
		return nil, fmt.Errorf("%s holds kernels of %s, not of %s (%s)", name, hardware, b.Hardware, rebuild)
	}
	if contract != b.Contract {
		return nil, fmt.Errorf("the kernels of %s are stale: they were built for another contract (%s)", b.Hardware, rebuild)
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(imageLimit), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer z.Close()
	image, err := z.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%s): %w", name, rebuild, err)
	}
	return image, nil
}
