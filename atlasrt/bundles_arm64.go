package main

import (
	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/generated/cpu_arm64"
)

// processors are the kernels for CPUs of this architecture.
func processors() []*bundle.Bundle {
	return []*bundle.Bundle{cpu_arm64.Bundle()}
}
