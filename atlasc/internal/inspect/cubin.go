package inspect

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kernel is what a GPU kernel asks of a multiprocessor.
type Kernel struct {
	Name       string // its entry point
	Code       int64  // bytes
	Parameters int64  // bytes
	Registers  int64  // of a thread
	Stack      int64  // bytes of a thread: spilled registers, arrays that are indexed at run time
	Shared     int64  // bytes of static shared memory of a block
	MaxThreads int64  // of a block; 0: unbounded
}

// Attributes of .nv.info sections, and how their values are stored. The numbers are those of the assembler; what they
// mean was compared with what `ptxas -v` and `cuobjdump --dump-elf` print.
const (
	attributeMaxThreads = 0x05 // three u32
	attributeFrame      = 0x11 // symbol, bytes of its stack frame
	attributeMinStack   = 0x12 // symbol, bytes of stack with all that it calls
	attributeParameter  = 0x17 // of one parameter: four bytes, u16 number, u16 offset, and its bytes from bit 18 of a u32 on
	attributeRegisters  = 0x2f // symbol, registers
	formatSized         = 4    // u16 length, then as many bytes; the other formats have two bytes in place
)

// reservedShared is the system's part of the shared memory that a cubin lists, since compute capability 8.0.
const reservedShared = 1024

// machineCUDA is e_machine of a cubin.
const machineCUDA = 190

// mostThreads keeps a product of three from overflowing.
const mostThreads = 1 << 20

// mostBytes is more than any section of a cubin that a GPU could load.
const mostBytes = 1 << 30

// Cubin reads the kernels of a cubin, sorted by name.
func Cubin(code []byte) ([]Kernel, error) {
	f, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return nil, fmt.Errorf("inspect a cubin: %w", err)
	}
	if f.Machine != machineCUDA {
		return nil, fmt.Errorf("inspect a cubin: it is for machine %v", f.Machine)
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_COMPRESSED != 0 || s.Size > mostBytes {
			return nil, fmt.Errorf("inspect a cubin: section %s is compressed or has %d bytes: no compiler writes that", s.Name, s.Size)
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("inspect a cubin: %w", err)
	}
	kernels := map[string]*Kernel{}
	for _, s := range f.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".nv.info."); ok {
			kernels[name] = &Kernel{Name: name}
		}
	}
	for _, s := range f.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".text."); ok && kernels[name] != nil {
			kernels[name].Code = int64(s.Size)
		}
		if name, ok := strings.CutPrefix(s.Name, ".nv.shared."); ok && kernels[name] != nil {
			kernels[name].Shared = max(0, int64(s.Size)-reservedShared)
		}
		own, ok := strings.CutPrefix(s.Name, ".nv.info")
		if !ok {
			continue
		}
		data, err := s.Data()
		if err == nil {
			err = attributes(data, func(attribute byte, value []byte) {
				word := func(i int) int64 { return int64(binary.LittleEndian.Uint32(value[4*i:])) }
				k := kernels[strings.TrimPrefix(own, ".")]
				switch {
				case k != nil && attribute == attributeParameter && len(value) == 12:
					k.Parameters += word(2) >> 18
				case k != nil && attribute == attributeMaxThreads && len(value) == 12:
					k.MaxThreads = min(word(0), mostThreads) * min(word(1), mostThreads) * min(word(2), mostThreads)
				case own == "" && len(value) == 8 && word(0) >= 1 && word(0) <= int64(len(symbols)):
					k := kernels[symbols[word(0)-1].Name]
					switch {
					case k == nil: // of a function that a kernel calls
					case attribute == attributeRegisters:
						k.Registers = word(1)
					case attribute == attributeFrame || attribute == attributeMinStack:
						k.Stack = max(k.Stack, word(1))
					}
				}
			})
		}
		if err != nil {
			return nil, fmt.Errorf("inspect a cubin: section %s: %w", s.Name, err)
		}
	}
	var sorted []Kernel
	for _, k := range kernels {
		sorted = append(sorted, *k)
	}
	slices.SortFunc(sorted, func(a, b Kernel) int { return strings.Compare(a.Name, b.Name) })
	return sorted, nil
}

// attributes calls f with every record of a .nv.info section.
func attributes(data []byte, f func(attribute byte, value []byte)) error {
	for len(data) > 0 {
		if len(data) < 4 {
			return errors.New("it ends inside a record")
		}
		format, attribute, length := data[0], data[1], 2
		value := data[2:]
		if format == formatSized {
			length = int(binary.LittleEndian.Uint16(value))
			value = value[2:]
		}
		if length > len(value) {
			return errors.New("it ends inside a record")
		}
		f(attribute, value[:length])
		data = value[length:]
	}
	return nil
}
