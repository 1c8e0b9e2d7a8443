// Package toolchain turns C files into images, through whatever compiler a hardware names.
//
// Results are cached by content: source, every header, flags and the compiler's version. A warning is an error.
package toolchain

import (
	"context"
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/targets"
)

// Unit is a file to compile.
type Unit struct {
	Name   string   // in messages
	Source string   // path from the repository's root
	Flags  []string // besides those of every unit
	At     diag.Pos // what asked for it
}

// Compiler is one toolchain. Paths are relative to the repository's root; every command runs there.
type Compiler interface {
	// Flags are what every unit is compiled with, and what an image is linked with. They are part of its sources.
	Flags() []string
	// Version finds the compiler and names its version and machine. The error is an MissingError where there is none.
	Version(ctx context.Context) (string, error)
	// Compile compiles one unit. The error is a Failure where the source is to blame.
	Compile(ctx context.Context, u Unit, object string) error
	// Link makes an image.
	Link(ctx context.Context, objects []string, image string) error
}

// MissingError is a compiler that is not installed.
type MissingError struct {
	Tool    string
	Install string // command that installs it
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed (%s)", e.Tool, e.Install)
}

// Failure is what a compiler says about a source, as it says it.
type Failure struct {
	Unit   Unit
	Output string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s does not compile:\n%s", f.Unit.At, f.Unit.Name, f.Output)
}

// Names lists the toolchains.
var Names = [...]string{"gcc"}

// Find returns a toolchain by name, for a repository at root. A command of "" means the toolchain's usual one.
func Find(name, root, command string) (Compiler, error) {
	if name != "gcc" {
		return nil, fmt.Errorf("toolchain %q is unknown (known: gcc)", name)
	}
	if command == "" {
		command = "gcc"
	}
	return &gcc{root: root, command: command}, nil
}

// FeatureFlags are the flags of a unit that needs features.
func FeatureFlags(h *targets.Hardware, needs []string) []string {
	flags := append([]string{}, h.Flags...)
	for _, need := range needs {
		flags = append(flags, h.Features[need].Flags...)
	}
	return flags
}

// IsMissing tells whether an error is a compiler that is not installed.
func IsMissing(err error) bool {
	var missing *MissingError
	return errors.As(err, &missing)
}
