// Package inspect looks at what was really built: entry points, their code, and what an image asks of its process.
package inspect

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/device/cuda/image"
)

// Report describes an image.
type Report struct {
	Bytes     int64      `json:"bytes"`     // size of the image
	Machine   string     `json:"machine"`   // of the ELF header, or "CUDA"
	Functions []Function `json:"functions"` // exported, sorted by name
	Undefined []string   `json:"undefined"` // symbols that the process has to give
}

// Function is an exported function.
type Function struct {
	Name   string  `json:"name"`       // its symbol
	Code   int64   `json:"code_bytes"` // size of its instructions
	Kernel *Kernel `json:"-"`          // of a GPU
}

// libraries give symbols without further ado: every process that can load an image has them.
var libraries = []string{"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

// Image reads an image of either kind.
func Image(file []byte) (*Report, error) {
	if image.Is(file) {
		return cubins(file)
	}
	return library(file)
}

// cubins reads an image of CUDA kernels.
func cubins(file []byte) (*Report, error) {
	i, err := image.Read(file)
	if err != nil {
		return nil, fmt.Errorf("inspect the image: %w", err)
	}
	r := &Report{Bytes: int64(len(file)), Machine: "CUDA"}
	for _, u := range i.Units {
		kernels, err := Cubin(u.Code)
		if err != nil {
			return nil, fmt.Errorf("unit %s: %w", u.Name, err)
		}
		for _, k := range kernels {
			r.Functions = append(r.Functions, Function{k.Name, k.Code, &k})
		}
	}
	slices.SortFunc(r.Functions, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

// library reads a shared library.
func library(image []byte) (*Report, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("inspect the image: %w", err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("inspect the image: %w", err)
	}
	r := &Report{Bytes: int64(len(image)), Machine: f.Machine.String()}
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF:
			if elf.ST_BIND(s.Info) != elf.STB_WEAK && !slices.Contains(libraries, s.Library) {
				r.Undefined = append(r.Undefined, s.Name)
			}
		case elf.ST_TYPE(s.Info) == elf.STT_FUNC:
			r.Functions = append(r.Functions, Function{Name: s.Name, Code: int64(s.Size)})
		}
	}
	slices.SortFunc(r.Functions, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(r.Undefined)
	return r, nil
}

// Function finds an exported function by name.
func (r *Report) Function(name string) (Function, bool) {
	i, found := slices.BinarySearchFunc(r.Functions, name, func(f Function, name string) int { return strings.Compare(f.Name, name) })
	if !found {
		return Function{}, false
	}
	return r.Functions[i], true
}
