package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/source"
)

// gcc compiles C for CPUs into a shared library.
type gcc struct {
	root    string
	command string
	arch    string // of the CPUs, where it is not this machine's
}

// gccFlags: bits must not depend on the compiler's choice of contractions, so bodies write fma themselves; square roots
// vectorise only where errno and traps do not matter.
var gccFlags = []string{
	"-std=gnu2x", "-Wall", "-Wextra", "-Werror", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
	"-fPIC", "-fvisibility=hidden", "-pthread",
}

var gccLinkFlags = []string{"-shared", "-pthread", "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-Wl,--no-undefined"}

func (g *gcc) Flags() []string { return slices.Concat(gccFlags, gccLinkFlags) }

func (g *gcc) Version(ctx context.Context) (string, error) {
	out, err := run(ctx, g.root, g.command, "--version")
	if errors.Is(err, exec.ErrNotFound) {
		return "", &MissingError{Tool: g.command, Install: g.install()}
	}
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", g.command, err)
	}
	first, _, _ := strings.Cut(out, "\n")
	return first, nil
}

// install is the command that brings the compiler and, for another machine, that one's C library.
func (g *gcc) install() string {
	triple, cross := strings.CutSuffix(g.command, "-gcc")
	if g.arch == "" || !cross {
		return "apt-get install gcc"
	}
	return fmt.Sprintf("apt-get install gcc-%s libc6-dev-%s-cross", strings.ReplaceAll(triple, "_", "-"), g.arch)
}

func (g *gcc) Compile(ctx context.Context, u Unit, object string) error {
	args := slices.Concat(gccFlags, u.Flags)
	for _, folder := range source.Folders {
		args = append(args, "-I"+folder)
	}
	return compile(ctx, g.root, g.command, u, append(args, "-c", "-o", object, u.Source)...)
}

func (g *gcc) Link(ctx context.Context, _ []Unit, objects []string, image string) error {
	args := slices.Concat(gccLinkFlags, []string{"-o", image}, objects, []string{"-lm"})
	if out, err := run(ctx, g.root, g.command, args...); err != nil {
		return fmt.Errorf("link: %w\n%s", err, out)
	}
	return nil
}
