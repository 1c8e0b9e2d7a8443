package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/inspect"
	"github.com/atlas-inference/atlas/atlasc/internal/source"
	"github.com/atlas-inference/atlas/atlasrt/device/cuda/image"
)

// nvcc compiles CUDA C++ into cubins, one per unit, which an image holds side by side.
type nvcc struct {
	root    string
	command string // as the user asks for; "" looks around
}

// nvccFlags: a warning of the compiler is an error, and so is one of the assembler.
var nvccFlags = []string{"-cubin", "-std=c++20", "-O3", "-Werror", "all-warnings", "-Xcompiler", "-Wall", "-Xptxas", "-Werror"}

// ToolkitFolder is where `make cuda-toolchain` installs the compiler, from the repository's root.
const ToolkitFolder = ".toolchain/cuda"

func (n *nvcc) Flags() []string { return nvccFlags }

var cudaRelease = regexp.MustCompile(`release [0-9.]+, V([0-9.]+)`)

func (n *nvcc) Version(ctx context.Context) (string, error) {
	command, err := n.find()
	if err != nil {
		return "", err
	}
	out, err := run(ctx, n.root, command, "--version")
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", command, err)
	}
	found := cudaRelease.FindStringSubmatch(out)
	if found == nil {
		first, _, _ := strings.Cut(out, "\n")
		return "", fmt.Errorf("%s says no version: %q", command, first)
	}
	return "nvcc " + found[1], nil
}

// Path is the command that Version asked.
func (n *nvcc) Path() string {
	command, _ := n.find()
	return command
}

// find looks for the compiler: what the user asks for, CUDA_HOME, PATH, the toolkit in the repository.
func (n *nvcc) find() (string, error) {
	candidates := []string{n.command}
	if n.command == "" {
		candidates = []string{"nvcc", filepath.Join(n.root, filepath.FromSlash(ToolkitFolder), "nvidia", "cu13", "bin", "nvcc")}
		if home := os.Getenv("CUDA_HOME"); home != "" {
			candidates = slices.Insert(candidates, 0, filepath.Join(home, "bin", "nvcc"))
		}
	}
	for _, c := range candidates {
		if found, err := exec.LookPath(c); err == nil {
			return filepath.Abs(found)
		}
	}
	return "", &MissingError{Tool: candidates[0], Install: "make cuda-toolchain"}
}

// Compile keeps nothing that is not a whole cubin.
func (n *nvcc) Compile(ctx context.Context, u Unit, object string) error {
	if err := n.compile(ctx, u, nvccFlags, object); err != nil {
		return err
	}
	code, err := os.ReadFile(object)
	if err == nil {
		_, err = inspect.Cubin(code)
	}
	if err != nil {
		return fmt.Errorf("%s: the compiler wrote no cubin of %s: %w", u.At, u.Name, err)
	}
	return nil
}

// PTX writes what a unit becomes before the assembler sees it, for its author to read.
func (n *nvcc) PTX(ctx context.Context, u Unit, out string) error {
	flags := slices.Clone(nvccFlags)
	flags[slices.Index(flags, "-cubin")] = "-ptx"
	return n.compile(ctx, u, flags, out)
}

func (n *nvcc) compile(ctx context.Context, u Unit, flags []string, out string) error {
	command, err := n.find()
	if err != nil {
		return err
	}
	args := slices.Concat(flags, u.Flags)
	for _, folder := range source.Folders {
		args = append(args, "-I"+folder)
	}
	return compile(ctx, n.root, command, u, append(args, "-o", out, u.Source)...)
}

// Link looks at what each unit became, compares it with what its launches may use, and puts the cubins side by side.
func (n *nvcc) Link(_ context.Context, units []Unit, objects []string, out string) error {
	var (
		i     image.Image
		diags diag.List
	)
	for at, u := range units {
		code, err := os.ReadFile(objects[at])
		if err != nil {
			return fmt.Errorf("read the cubin of %s: %w", u.Name, err)
		}
		kernels, err := inspect.Cubin(code)
		if err != nil {
			return fmt.Errorf("%s: %w", u.Name, err)
		}
		name := strings.TrimSuffix(path.Base(u.Source), path.Ext(u.Source))
		i.Units = append(i.Units, image.Unit{Name: name, Code: code})
		for _, l := range u.Launches {
			found := slices.IndexFunc(kernels, func(k inspect.Kernel) bool { return k.Name == l.Entry })
			if found < 0 {
				diags.Add(l.At, "", "the cubin of %s lacks entry point %s", u.Name, l.Entry)
				continue
			}
			l.budget(&kernels[found], &diags)
			i.Entries = append(i.Entries, image.Entry{Name: l.Entry, Unit: name, Block: l.Block, SharedBytes: l.Shared,
				Cluster: l.Cluster, Programmatic: l.Programmatic, Cooperative: l.Cooperative, L1: l.L1})
		}
	}
	if err := diags.Err(); err != nil {
		return err
	}
	var file bytes.Buffer
	if err := i.Write(&file); err != nil {
		return err
	}
	return os.WriteFile(out, file.Bytes(), 0o666)
}

// budget reports what a kernel has more of than its launch may use.
func (l *Launch) budget(k *inspect.Kernel, diags *diag.List) {
	if k.Parameters != l.Arguments {
		diags.Add(l.At, "launch code and kernel disagree: run atlasc build", "kernel %s takes %d bytes of arguments, its operation has %d", k.Name, k.Parameters, l.Arguments)
	}
	if k.Stack > l.MaxStack {
		diags.Add(l.At, "use fewer registers, index arrays by constants only, or raise max_stack",
			"kernel %s has %d bytes of stack, where max_stack is %d: registers spill, or an array is indexed at run time", k.Name, k.Stack, l.MaxStack)
	}
	if l.MaxRegisters > 0 && k.Registers > l.MaxRegisters {
		diags.Add(l.At, "raise max_registers or min_blocks", "kernel %s has %d registers, where max_registers is %d", k.Name, k.Registers, l.MaxRegisters)
	}
	if shared := k.Shared + int64(l.Shared); shared > l.MaxShared {
		diags.Add(l.At, "use smaller tiles or fewer stages", "kernel %s has %d bytes of static and %d of dynamic shared memory, where %d are allowed", k.Name, k.Shared, l.Shared, l.MaxShared)
	}
	if k.MaxThreads > 0 && int64(l.Threads()) > k.MaxThreads {
		diags.Add(l.At, "", "kernel %s is compiled for blocks of %d threads and launched with %d", k.Name, k.MaxThreads, l.Threads())
	}
}
