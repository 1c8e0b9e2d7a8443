// Package op is a small contract for the compiler's own tests.
package op

import (
	"fmt"
	"unsafe"
)

// Ptr is an address.
type Ptr uint64

// Kernel is a loaded entry point.
type Kernel uintptr

// Grid is how many blocks a launch has.
type Grid struct{ X, Y, Z uint32 }

// Stream is a queue of launches.
type Stream interface {
	Args(bytes uintptr) unsafe.Pointer
	Launch(k Kernel, grid Grid)
	Scratch(bytes int64) Ptr
	Fail(err error)
}

// DType is an element type.
type DType int32

// Element types.
const (
	F32 DType = iota + 1
	BF16
)

// Scheme is how a weight is stored.
type Scheme int32

// Schemes.
const (
	SchemeBF16 Scheme = iota + 1
	SchemeQ8_0
)

func (s Scheme) String() string { return fmt.Sprint(int32(s)) }

// Weight is a packed matrix.
type Weight struct {
	Data   Ptr
	Scale  Ptr
	Stride int64
	Scheme Scheme
	Rows   int32
	Cols   int32
	Count  int32
}

// Core is what every hardware does.
type Core interface {
	Norm(Stream, Norm)
	Linear(Stream, Linear)
}

// Fused is served in part.
type Fused interface {
	NormLinear(Stream, NormLinear) bool
}

// The other required interfaces.
type (
	Attention interface{}
	Recurrent interface{}
	MoE       interface{}
	Sampler   interface{}
	Drafting  interface{}
	Memory    interface{}
)

// Packer knows the size of packed weights.
type Packer interface {
	PackedBytes(scheme Scheme, rows, cols int32) int64
}

// Norm has no weight.
type Norm struct {
	Out  Ptr   `atlas:"out act [Rows,Cols]"`
	In   Ptr   `atlas:"in? Type [Rows:Pitch,Cols]"`
	Rows int32 `atlas:"step"`
	Cols int32

	Pitch int32
	Type  DType
	Eps   float32
	_     int32
}

// Linear has one.
type Linear struct {
	Out   Ptr    `atlas:"out act [Rows,W.Rows]"`
	In    Ptr    `atlas:"in act [Rows,W.Cols]"`
	W     Weight `atlas:"in"`
	Count int64
	Rows  int32 `atlas:"step"`
	_     int32
}

// NormLinear need not be served.
type NormLinear struct {
	Out  Ptr    `atlas:"out act [Rows,W.Rows]"`
	W    Weight `atlas:"in"`
	Rows int32  `atlas:"step"`
	_    int32
}
