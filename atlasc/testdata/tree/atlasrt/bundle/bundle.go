// Package bundle is what generated code hands over, for the compiler's own tests.
package bundle

import (
	"io/fs"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Set is every operation.
type Set interface {
	op.Core
	op.Fused
	op.Packer
	Scratch(args any) int64
}

// Bundle is a generated package.
type Bundle struct {
	Hardware    string
	Device      string
	Activations op.DType
	Needs       []string
	Features    []string
	Kernels     []Kernel
	Contract    string
	Sources     string
	Files       fs.FS
	New         func(kernels []op.Kernel, has func(feature string) bool) Set
	Models      map[string]func(kernels []op.Kernel, has func(feature string) bool) Set
}

// Kernel is an entry point of an image.
type Kernel struct {
	Name       string
	Rounds     string
	MostBlocks uint32
}
