// Package contract reads package op's source: the structs that cross from Go to a kernel, field by field.
//
// It type-checks the source itself, so that findings have positions and no stale binary is in between. Every struct
// it returns has the same layout in Go and in C on a 64-bit machine: no Go pointer and no hidden padding.
package contract

import (
	"go/types"
	"slices"
)

// Required names the interfaces of package op that every hardware's set implements. Methods of other interfaces are
// optional: an operation of theirs without a kernel is left out. A method that returns a bool may be served in part.
var Required = []string{"Core", "Attention", "Recurrent", "MoE", "Sampler", "Drafting", "Packer", "Memory", "Fused"}

// Contract is what package op declares.
type Contract struct {
	Ops       []*Struct  // sorted by name
	Weight    *Struct    // the one struct that operations carry by value
	Constants []Constant // typed integer constants, by type, in source order
	Package   *types.Package
}

// Op finds an operation by name; nil where there is none.
func (c *Contract) Op(name string) *Struct {
	i, found := slices.BinarySearchFunc(c.Ops, name, func(s *Struct, name string) int {
		switch {
		case s.Name < name:
			return -1
		case s.Name > name:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return c.Ops[i]
}

// Names lists the operations.
func (c *Contract) Names() []string {
	names := make([]string, len(c.Ops))
	for i, s := range c.Ops {
		names[i] = s.Name
	}
	return names
}

// ConstantsOf lists the constants of one type.
func (c *Contract) ConstantsOf(typ string) []Constant {
	var of []Constant
	for _, k := range c.Constants {
		if k.Type == typ {
			of = append(of, k)
		}
	}
	return of
}

// Struct is an operation, or the weight that operations carry.
type Struct struct {
	Name     string  // of the operation
	Required bool    // some interface of Required has it as a method
	Partial  bool    // its method reports whether some kernel serves the call: not all need one
	Fields   []Field // in order
	Size     int64   // bytes
}

// Field finds a field by name; nil where there is none.
func (s *Struct) Field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// Weight returns the operation's field of type Weight; nil where it has none.
func (s *Struct) Weight() *Field {
	for i := range s.Fields {
		if s.Fields[i].Kind == WeightField {
			return &s.Fields[i]
		}
	}
	return nil
}

// Kind is what a field is, as far as a kernel is concerned.
type Kind int

// Kinds of fields.
const (
	Number      Kind = iota // int32, uint32, int64, float32
	Enum                    // a named integer type of package op
	Pointer                 // an op.Ptr
	WeightField             // an op.Weight, by value
	Padding                 // named _, read by nobody
)

// Field is one field of a Struct.
type Field struct {
	Name     string // as in Go
	Type     string // as Go spells it inside package op
	Kind     Kind   // what it is to launch code
	Offset   int64  // bytes from the beginning of the struct
	Size     int64  // bytes
	Step     bool   // a Number that one step has more of than another
	Role     Role   // of a Pointer or a WeightField
	Optional bool   // the pointer may be zero
	Elem     string // of a Pointer: a type of the tag grammar, or the DType field that tells
	Dims     []Dim  // of a Pointer
}

// Role is which way data goes through a pointer.
type Role string

// Roles.
const (
	In    Role = "in"
	Out   Role = "out"
	InOut Role = "inout"
)

// Dim is one dimension of a buffer: Go expressions over the struct's integer fields.
type Dim struct {
	Size  string // how many items
	Pitch string // elements between consecutive items; empty where they are dense
}

// Constant is a typed integer constant of package op.
type Constant struct {
	Name  string // as in Go
	C     string // as in C: ATLAS_SCHEME_Q8_0
	Type  string // as in Go: Scheme
	Value int64  // the same in Go and C
}
