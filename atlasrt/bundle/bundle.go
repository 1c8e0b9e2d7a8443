// Package bundle is what generated code hands to the server: the kernels of one hardware and how to launch them.
package bundle

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Set is every operation that the runtime asks of a hardware.
type Set interface {
	op.Core
	op.Attention
	op.Recurrent
	op.MoE
	op.Fused
	op.Sampler
	op.Drafting
	op.Packer
	op.Memory
	// Scratch is the most scratch memory, in bytes, that a call of the operation whose struct args is may ask for, where args has
	// the most of each size of a step, and a call may have anything less. It is for those who have calls of all operations at hand.
	Scratch(args any) int64
}

// Bundle is the generated package of one hardware. Its strings are committed; its image is built.
type Bundle struct {
	Hardware    string   // "cpu-x86-64-v3"
	Device      string   // which package of device runs it: "cpu"
	Activations op.DType // what act means in op's tags
	Needs       []string // processor features without which no kernel runs
	Features    []string // processor features that some branches ask for
	Kernels     []Kernel // entry points, in the order that New takes them
	Contract    string   // hash of structs, stubs and entry points: an image carries the one it was built for
	Files       fs.FS    // holds blob/image.zst, once built
	// New makes the set. has tells whether a feature or option ("exact") is on.
	New func(kernels []op.Kernel, has func(feature string) bool) Set
	// Models make the sets of models that have kernels of their own, by the names of their folders of manifests.
	Models map[string]func(kernels []op.Kernel, has func(feature string) bool) Set
}

// Kernel is an entry point of an image.
type Kernel struct {
	Name   string // of the entry point
	Rounds string // the rule of package oracle by which it rounds activations before it multiplies them; "" leaves them as they are
	// MostBlocks is the most blocks along x that a kernel is launched with whose blocks take one tile after another; 0 for one
	// that has as many blocks as there are tiles.
	MostBlocks uint32
}

// IsPersistent tells whether some kernels have blocks that take one tile after another.
func (b *Bundle) IsPersistent() bool {
	return slices.ContainsFunc(b.Kernels, func(k Kernel) bool { return k.MostBlocks > 0 })
}

// Rounds tells whether some kernels round activations.
func (b *Bundle) Rounds() bool {
	return slices.ContainsFunc(b.Kernels, func(k Kernel) bool { return k.Rounds != "" })
}

// Missing lists the features that b cannot do without and present lacks.
func (b *Bundle) Missing(present []string) []string {
	var missing []string
	for _, f := range b.Needs {
		if !slices.Contains(present, f) {
			missing = append(missing, f)
		}
	}
	return missing
}

// Unloaded are kernels that no device has: a set of them can be asked anything and must not be run. Kernel i+1 is b.Kernels[i].
func (b *Bundle) Unloaded() []op.Kernel {
	kernels := make([]op.Kernel, len(b.Kernels))
	for i := range kernels {
		kernels[i] = op.Kernel(i + 1)
	}
	return kernels
}

// Set makes the set for the model that a checkpoint's name tells, or any for "", of kernels that Load or Unloaded gave. present lists the
// processor's features and the options that are on.
func (b *Bundle) Set(checkpoint string, kernels []op.Kernel, present []string) Set {
	set := b.New
	if model := b.Model(checkpoint); model != "" {
		set = b.Models[model]
	}
	return set(kernels, func(feature string) bool { return slices.Contains(present, feature) })
}

// Model is the one of b.Models for a checkpoint of a name, such as "Qwen/Qwen3-8B-FP8" for qwen3-8b; "" where there is
// none. Any set computes any model: another than the best costs time only, so a name is enough to go by.
func (b *Bundle) Model(checkpoint string) string {
	name := strings.ReplaceAll(strings.ToLower(path.Base(filepath.ToSlash(checkpoint))), "_", "-")
	best := ""
	for model := range b.Models {
		rest, ok := strings.CutPrefix(name, model)
		if ok && len(model) > len(best) && (rest == "" || rest[0] == '-' || rest[0] == '.') {
			best = model
		}
	}
	return best
}
