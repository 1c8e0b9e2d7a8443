// Package toolchain turns C and CUDA files into images, through whatever compiler a hardware names.
//
// Results are cached by content: source, every header, flags and the compiler's version. A warning is an error.
package toolchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/targets"
)

// Unit is a file to compile.
type Unit struct {
	Name   string   // in messages
	Source string   // path from the repository's root
	Flags  []string // besides those of every unit
	At     diag.Pos // what asked for it
	// Launches are the entry points that a unit for a GPU has, and how they are launched.
	Launches []Launch
}

// Launch is an entry point of a unit for a GPU, how it is launched, and what it may use.
type Launch struct {
	Entry        string    // its name in C
	Arguments    int64     // bytes of the argument block
	Block        [3]uint32 // threads in x, y and z
	Shared       uint32    // bytes of dynamic shared memory
	Cluster      [3]uint32 // blocks in x, y and z; zeros: no clusters
	Programmatic bool      // may start before the launch ahead of it ends
	Cooperative  bool      // all of its blocks run at the same time
	L1           bool      // leaves first-level cache what its blocks do not share
	MaxRegisters int64     // of a thread; 0: any
	MaxShared    int64     // bytes of shared memory of a block, static and dynamic
	MaxStack     int64     // bytes of a thread
	At           diag.Pos  // the manifest's line, for findings
}

// Threads is how many threads a block has.
func (l *Launch) Threads() uint32 { return l.Block[0] * l.Block[1] * l.Block[2] }

// Compiler is one toolchain. Paths are relative to the repository's root; every command runs there.
type Compiler interface {
	// Flags are what every unit is compiled with, and what an image is linked with. They are part of its sources.
	Flags() []string
	// Version finds the compiler and names its version and machine. The error is an MissingError where there is none.
	Version(ctx context.Context) (string, error)
	// Compile compiles one unit. The error is a Failure where the source is to blame.
	Compile(ctx context.Context, u Unit, object string) error
	// Link makes an image of the units' objects. The error is a diag.List where a unit is to blame.
	Link(ctx context.Context, units []Unit, objects []string, image string) error
}

// Translator is a Compiler that also shows what a unit becomes before the assembler sees it, for its author to read.
type Translator interface {
	PTX(ctx context.Context, u Unit, out string) error
}

// MissingError is a compiler that is not installed.
type MissingError struct {
	Tool    string // its command
	Install string // command that installs it
}

// Error names the compiler and how to install it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed (%s)", e.Tool, e.Install)
}

// Failure is what a compiler says about a source, as it says it.
type Failure struct {
	Unit   Unit   // the source
	Output string // of the compiler
}

// Error is the line of the manifest and, below it, what the compiler says.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s does not compile:\n%s", f.Unit.At, f.Unit.Name, f.Output)
}

// Names lists the toolchains.
var Names = [...]string{"gcc", "nvcc"}

// Commands are the compilers' commands that a user asks for; "" means the usual one.
type Commands struct{ GCC, NVCC string }

// Find returns what compiles for a hardware on this machine, for a repository at root.
func Find(h *targets.Hardware, root string, commands Commands) (Compiler, error) {
	switch h.Toolchain {
	case "gcc":
		if crosses(h) {
			return &gcc{root: root, command: h.Compiler, arch: h.Arch}, nil
		}
		return &gcc{root: root, command: cmp.Or(commands.GCC, "gcc")}, nil
	case "nvcc":
		return &nvcc{root: root, command: commands.NVCC}, nil
	}
	return nil, fmt.Errorf("toolchain %q is unknown (known: %s)", h.Toolchain, strings.Join(Names[:], ", "))
}

// Name is what a report calls the compiler of a hardware: its toolchain, or the command that stands for it here.
func Name(h *targets.Hardware) string {
	if crosses(h) {
		return h.Compiler
	}
	return h.Toolchain
}

// crosses tells whether programs for h do not run on machines like this one.
func crosses(h *targets.Hardware) bool { return h.Arch != "" && h.Arch != runtime.GOARCH }

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
