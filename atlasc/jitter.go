package main

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
)

// jitter compiles a GPU's kernels with warps that are late at random (kernels/lib/cuda/ptx/jitter.cuh) and puts the image into DIR/<hardware>.
// Their budgets of registers and stack are not asked, since to be late takes some.
func (env *environment) jitter(p *project, pkg *emit.Package, out string) error {
	of := *pkg
	of.Units = slices.Clone(pkg.Units)
	for i := range of.Units {
		u := &of.Units[i]
		u.Flags = append(slices.Clone(u.Flags), "-DATLAS_JITTER")
		u.Launches = slices.Clone(u.Launches)
		for j := range u.Launches {
			u.Launches[j].MaxRegisters, u.Launches[j].MaxStack = 0, 1<<16
		}
	}
	image, err := env.compile(p, &of)
	if err != nil {
		return err
	}
	file, err := compress(pkg.ImageHeader(), image)
	if err != nil {
		return err
	}
	if err := put(pkg, out, file); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s: %d entry points with late warps in %s\n", pkg.Hardware.Name, len(pkg.Entries), out)
	return nil
}
