package bundle

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// imageLimit bounds what an image may grow to when it is unpacked.
const imageLimit = 512 << 20

// imageName is where Bundle.Files holds the compiled kernels.
const imageName = "blob/image.zst"

// Load puts b's kernels on d, for the model that a checkpoint's name tells, or any for "". present lists the processor's
// features and the options that are on; override, where it is not nil, holds <hardware>/image.zst and takes the place of
// what the program carries.
func Load(b *Bundle, d device.Device, checkpoint string, present []string, override fs.FS) (Set, error) {
	has := make(map[string]bool, len(present))
	for _, f := range present {
		has[f] = true
	}
	if missing := b.Missing(present); len(missing) > 0 {
		return nil, fmt.Errorf("%s needs a processor with %s", b.Hardware, strings.Join(missing, ", "))
	}
	kernels, err := b.kernels(d, override)
	if err != nil {
		return nil, err
	}
	set := b.New
	if model := b.Model(checkpoint); model != "" {
		set = b.Models[model]
	}
	return set(kernels, func(f string) bool { return has[f] }), nil
}

// Reload puts the kernels of a newer image in the place of those that set launches. Nothing may be launched meanwhile, and
// steps that were recorded before launch the old ones, which stay on d.
func Reload(b *Bundle, d device.Device, set Set, override fs.FS) error {
	swapper, ok := set.(interface{ Swap(kernels []op.Kernel) })
	if !ok {
		return fmt.Errorf("the kernels of %s cannot be exchanged while they run", b.Hardware)
	}
	kernels, err := b.kernels(d, override)
	if err != nil {
		return err
	}
	swapper.Swap(kernels)
	return nil
}

// kernels loads an image and finds its entry points, in the order that New takes them.
func (b *Bundle) kernels(d device.Device, override fs.FS) ([]op.Kernel, error) {
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

// Missing lists the features that b cannot do without and present lacks.
func (b *Bundle) Missing(present []string) []string {
	has := make(map[string]bool, len(present))
	for _, f := range present {
		has[f] = true
	}
	var missing []string
	for _, f := range b.Needs {
		if !has[f] {
			missing = append(missing, f)
		}
	}
	return missing
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
