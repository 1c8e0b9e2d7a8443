package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
	"github.com/atlas-inference/atlas/targets"
)

type doctorCommand struct{}

func (doctorCommand) Run(env *environment) error {
	root, err := findRoot(env.root)
	if err != nil {
		return err
	}
	hardware, err := targets.Hardwares(os.DirFS(root + "/targets"))
	if err != nil {
		return findings(err)
	}
	var first error
	for _, same := range byCompiler(hardware) {
		compiler, err := toolchain.Find(same[0], root, env.compilers)
		if err != nil {
			return err
		}
		version, err := compiler.Version(env.ctx)
		var absent *toolchain.MissingError
		switch {
		case errors.As(err, &absent):
			version = "missing (" + absent.Install + ")"
			first = errors.Join(first, err)
		case err != nil:
			return err
		}
		if p, ok := compiler.(interface{ Path() string }); ok && err == nil {
			version += " (" + p.Path() + ")"
		}
		var names []string
		for _, h := range same {
			names = append(names, h.Name)
		}
		fmt.Fprintf(env.stdout, "%s: %s\n  serves %s\n", toolchain.Name(same[0]), version, strings.Join(names, ", "))
	}
	return first
}

// byCompiler groups hardware by what compiles for it.
func byCompiler(hardware []*targets.Hardware) [][]*targets.Hardware {
	groups := map[string][]*targets.Hardware{}
	for _, h := range hardware {
		groups[toolchain.Name(h)] = append(groups[toolchain.Name(h)], h)
	}
	var sorted [][]*targets.Hardware
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		sorted = append(sorted, groups[name])
	}
	return sorted
}
