package main

import (
	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/generated/b200"
	"github.com/atlas-inference/atlas/generated/gb10"
	"github.com/atlas-inference/atlas/generated/h200"
	"github.com/atlas-inference/atlas/generated/rtx6000pro"
)

// bundles are the kernels that this program is linked with, the best for a machine that can run several first.
func bundles() []*bundle.Bundle {
	return append([]*bundle.Bundle{h200.Bundle(), b200.Bundle(), rtx6000pro.Bundle(), gb10.Bundle()}, processors()...)
}
