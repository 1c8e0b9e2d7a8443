package main

import (
	"errors"
	"fmt"
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
	for _, name := range toolchain.Names {
		hardware := served(hardware, name)
		if len(hardware) == 0 {
			continue
		}
		compiler, err := toolchain.Find(name, root, env.compilers)
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
		fmt.Fprintf(env.stdout, "%s: %s\n  serves %s\n", name, version, strings.Join(hardware, ", "))
	}
	return first
}

// served lists the hardware that a toolchain compiles for.
func served(hardware []*targets.Hardware, toolchain string) []string {
	var names []string
	for _, h := range hardware {
		if h.Toolchain == toolchain {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return names
}
