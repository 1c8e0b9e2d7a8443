package main

import (
	"errors"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// A kernel that the dispatch tables have and no case launches is never compared with the oracle, wherever the tests run.
func TestCasesReachEveryKernel(t *testing.T) {
	for _, b := range bundles() {
		kernels := b.Unloaded()
		var sets []bundle.Set
		for _, options := range [][]string{nil, {"exact"}, b.Features, append([]string{"amx"}, b.Features...)} {
			sets = append(sets, b.Set("", kernels, options))
		}
		var q calls.Stream
		reached, err := optest.Reached(&q, b, sets...)
		if err := errors.Join(err, q.Err); err != nil {
			t.Fatal(err)
		}
		for i, k := range kernels {
			if reached[k] == 0 {
				t.Errorf("%s: no case launches %s (add one of its size to sizeCases, in op/optest/cases_sizes.go)", b.Hardware, b.Kernels[i].Name)
			}
		}
	}
}
