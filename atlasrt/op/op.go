// Package op is the contract between models and kernels: one struct and one method per operation.
//
// A struct is copied to the device as it stands, so it holds no Go pointer and no hidden padding. Struct tags say what
// a field means to the compiler, the header that kernels include, the tests and the bounds checks:
//
//	`atlas:"ROLE TYPE [DIM,DIM,...]"`
//
// ROLE is in, out or inout, with a ? where the pointer may be zero. TYPE is f32, bf16, i32, i64, u32, u8, act (the
// activation type of the kernel set) or the name of a DType field of the same struct. A DIM is a Go expression over
// the integer fields; DIM:PITCH says that consecutive items lie PITCH elements apart, counted in the dimensions to the
// right of it. A Weight field has a role only. Fields that no kernel reads are named _.
//
// An integer tagged `atlas:"step"` is a size that one step has more of than another. The others belong to the model. Memory
// is planned for the most of each, and a call may come with anything less.
//
// Sizes in a struct are those that a captured step is replayed with; what changes from step to step (positions,
// lengths, slots, tables) lies behind a Ptr.
package op

import "unsafe"

// Ptr is an address in the memory of one device. Zero is no address.
type Ptr uint64

// Kernel is an entry point that a device has loaded. Only the device that gave it knows what it means.
type Kernel uintptr

// Grid is how many blocks a launch has in each direction.
type Grid struct{ X, Y, Z uint32 }

// Tile says how a copy engine reads a matrix of bf16: Rows of Cols elements that lie Pitch elements apart, in boxes of
// BoxRows by BoxCols, or of all rows where the matrix has fewer. What lies past the matrix reads as zeros. In a box, the
// 16-byte pieces of 128 bytes are swizzled: piece c of row r lies at c ^ r % 8.
type Tile struct {
	Data             Ptr // a multiple of 16
	Rows, Cols       int64
	Pitch            int64 // a multiple of 8
	BoxRows, BoxCols uint32
}

// TensorMap is a Tile as a copy engine has it.
type TensorMap [16]uint64

// Stream is an ordered queue of launches on one device. Models only pass it on.
//
// A launch reports nothing: the stream keeps its first error for whoever waits for it, so that a forward pass reads
// like its paper.
type Stream interface {
	// Args lends bytes of space for the argument block of the next Launch.
	Args(bytes uintptr) unsafe.Pointer
	// Launch queues grid blocks of k over the argument block that Args lent last.
	Launch(k Kernel, grid Grid)
	// Scratch lends device memory until the next call of Scratch takes effect in queue order; 64-byte aligned.
	Scratch(bytes int64) Ptr
	// TensorMap makes what a copy engine reads a matrix by. A device without one fails; a stream that runs nothing gives zeros.
	TensorMap(Tile) TensorMap
	// Fail records err unless an error came before it.
	Fail(err error)
}

// DType is the element type of a buffer.
type DType int32

// Element types. Their numbers are part of the contract.
const (
	F32 DType = iota + 1
	BF16
	F16
	I32
	I64
	U32
	U8
	F8E4M3
)

// Bytes is the size of one element.
func (t DType) Bytes() int64 {
	switch t {
	case F32, I32, U32:
		return 4
	case BF16, F16:
		return 2
	case I64:
		return 8
	case U8, F8E4M3:
		return 1
	}
	panic("BUG: element type without a size")
}

// String is the name that struct tags use, such as bf16; "none" and "unknown" are no types.
func (t DType) String() string {
	names := [...]string{"none", "f32", "bf16", "f16", "i32", "i64", "u32", "u8", "f8_e4m3"}
	if t < 0 || int(t) >= len(names) {
		return "unknown"
	}
	return names[t]
}
