// Package op is the contract between models and kernels: one struct and one method per operation.
//
// A struct is copied to the device byte by byte, so it holds no Go pointer and no hidden padding. Struct tags describe each field. From
// them follow the header that kernels include, the tests and the bounds checks:
//
//	`atlas:"ROLE TYPE [DIM,DIM,...]"`
//
// ROLE is in, out or inout, with a ? where the pointer may be zero. TYPE is f32, bf16, i32, i64, u32, u8, act (the
// activation type of the kernel set) or the name of a DType field of the same struct. A DIM is a Go expression over
// the integer fields; DIM:PITCH says that consecutive items lie PITCH elements apart, counted in the dimensions to the
// right of it. A Weight field has a role only. Fields that no kernel reads are named _.
//
// An integer tagged `atlas:"step"` is a size that differs from step to step, such as the number of rows; the others belong to the model.
// Memory is planned for the largest value of each, and a call may come with any smaller one.
//
// A recorded step is replayed with the sizes in its structs. What changes without a new recording (positions, lengths, slots, tables)
// lies behind a Ptr.
//
// These names mean the same in every struct. A row is one token of one sequence in the step's batch.
//
//   - Out is the result and In the input; Rows is how many rows the call has, Cols how many elements a row has.
//   - W is the matrix that rows are multiplied by. W.Rows are its outputs and W.Cols its inputs; with experts W.Count is their number.
//   - OutPitch and QPitch are the elements from one row of Out, or of Q, to the next.
//   - Bias is added to the result where it is given. Scale is a norm's factor for each column where it is a Ptr; where it is a number
//     the struct's comment says what it multiplies. Eps is a norm's ε.
//   - Residual is the sum of the blocks so far, and Sum is where Residual + In is stored.
//   - Heads, KVHeads and HeadDim are the query heads, the key heads (and as many value heads), and the elements of a head.
//   - Blocks and BlockSize are the blocks of the paged cache, and the tokens of a block. K, V and KVType are the cached keys and values of
//     one layer, and their element type.
//   - Seqs, Starts, Lengths, Tables and MaxBlocks say which rows are of which sequence, and which blocks hold its tokens: see PagedAttention.
//   - Slot, Slots, Drafts, MaxDrafts and Accepted are of layers that keep a state for each sequence: see Recurrent.
//   - A chunk is the rows that one sequence has in the step. A draw is a token that Sample takes by the logits of a row. A draft is a guessed
//     token; the drafts of a chunk are its last rows, and its draws tell which of them were right: see Accept.
//   - TopK is how many experts a row gets. A pick is one of these choices: row r has picks r·TopK to r·TopK+TopK-1.
package op

import "unsafe"

// Ptr is an address in the memory of one device. Zero is no address.
type Ptr uint64

// Kernel is an entry point that a device has loaded. It is valid for that device alone.
type Kernel uintptr

// Grid is how many blocks a launch has in each direction.
type Grid struct{ X, Y, Z uint32 }

// Tile describes a matrix of bf16 to a GPU's copy engine, which copies it into shared memory in boxes. What lies past the matrix is copied
// as zeros. In a box, the 16-byte pieces of 128 bytes are swizzled: piece c of row r lies at place c ^ r % 8.
type Tile struct {
	Data             Ptr    // the first element; a multiple of 16 bytes
	Rows, Cols       int64  // of the matrix
	Pitch            int64  // elements from one row to the next, a multiple of 8
	BoxRows, BoxCols uint32 // of a box; a matrix with fewer rows has boxes of all its rows
}

// TensorMap is a Tile in the form that a copy engine reads (CUtensorMap of cuda.h).
type TensorMap [16]uint64

// Stream is an ordered queue of launches on one device. Models only pass it on to operations.
//
// A launch returns no error, so that a forward pass reads like its paper: the stream keeps its first error until somebody waits for it.
type Stream interface {
	// Args lends space for the argument block of the next Launch. The caller writes all of it.
	Args(bytes uintptr) unsafe.Pointer
	// Launch queues grid blocks of k over the argument block that Args lent last.
	Launch(k Kernel, grid Grid)
	// Scratch lends device memory to the launches that are queued before the next call of Scratch; its address is a multiple of 64.
	Scratch(bytes int64) Ptr
	// TensorMap makes the descriptor of a matrix for a copy engine. A device without one fails; a stream that runs nothing gives zeros.
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
	F8E4M3 // one sign, four exponent and three fraction bits; no infinity
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
