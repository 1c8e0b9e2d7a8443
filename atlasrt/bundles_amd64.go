package main

import (
	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/generated/cpu_x86_64_v3"
	"github.com/atlas-inference/atlas/generated/cpu_x86_64_v4"
)

// processors are the kernels for CPUs of this architecture.
func processors() []*bundle.Bundle {
	return []*bundle.Bundle{cpu_x86_64_v4.Bundle(), cpu_x86_64_v3.Bundle()}
}
