// Package model says what the engine needs to know of a model: how much memory it keeps per token, and one forward pass over a ragged
// batch of rows. A row is one token of one sequence; ragged means that sequences bring different numbers of rows to a step.
//
// Families live in folders below, each with its config, its weights and its forward pass. They are built from the parts in nn, and call
// kernels through the interfaces of package op alone.
package model

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Model is a loaded network.
type Model interface {
	// Layout is what the engine plans memory by. It never changes.
	Layout() Layout
	// Forward queues one step on q. It only queues: nothing has run when it returns, and errors stay in the stream.
	Forward(q op.Stream, in *Inputs)
}

// Layout is what a model keeps between steps, the largest token id and position that it knows, and the drafts that it is made for.
type Layout struct {
	Memory     []Memory // of each layer that keeps something
	Vocab      int32    // token ids, from 0
	MaxContext int32    // positions, from 0: the longest sequence
	Drafts     int32    // most drafts of one sequence in a step: Limits.Drafts
}

// Keeps tells whether any layer keeps memory of a kind.
func (l Layout) Keeps(kind Kind) bool {
	return slices.ContainsFunc(l.Memory, func(m Memory) bool { return m.Kind == kind })
}

// Memory is what one layer keeps: arrays of one kind.
type Memory struct {
	Kind   Kind    // of all arrays
	Arrays []Array // in the order in which Inputs.Memory has them
}

// Kind is what memory belongs to, and so who keeps its books.
type Kind int

// Kinds.
const (
	PerToken    Kind = iota // each token of a sequence has its own: an array is [Blocks,…,BlockSize,…]
	PerSequence             // each sequence has one: an array is [Slots,…]
)

// Array is so many elements for each token, or for each sequence.
type Array struct {
	Elements int64    // for one token or one sequence
	Type     op.DType // 0: that of Inputs.KVType
}

// KeysAndValues is the memory of attention: heads keys of each token, and as many values, of headDim elements each.
func KeysAndValues(heads, headDim int32) Memory {
	each := Array{Elements: int64(heads) * int64(headDim)}
	return Memory{Kind: PerToken, Arrays: []Array{each, each}}
}

// Inputs is one step. Every Ptr is device memory that the engine owns. The integers are sizes of the arrays, which may be larger than
// what a step uses: rows and sequences that are left over are padding.
//
// Rows of prompts, of chunks of prompts and of decoding sequences are one batch: see op.PagedAttention for Starts, Lengths and Tables,
// op.RotaryCache for Slots, and op.Recurrent for States (there Slot), Drafts and Accepted.
type Inputs struct {
	Tokens     op.Ptr     // i32 [Rows]: token ids
	Positions  op.Ptr     // i32 [1,Rows]: of each token in its sequence, from 0
	Slots      op.Ptr     // i32 [Rows]: where in the cache a row's key and value go; negative: nowhere
	Starts     op.Ptr     // i32 [Seqs+1]: sequence s has rows Starts[s] to Starts[s+1]-1
	Lengths    op.Ptr     // i32 [Seqs]: tokens of each sequence so far, this step's included
	Tables     op.Ptr     // i32 [Seqs,MaxBlocks]: the blocks of the cache that hold each sequence
	States     op.Ptr     // i32 [Seqs]: the slot of each sequence; negative: none. Zero where no layer keeps anything per sequence
	Drafts     op.Ptr     // i32 [Seqs]: how many of a sequence's last rows are drafts; zero where none are
	Accepted   op.Ptr     // i32 [Seqs]: how many drafts of the sequence's step before were right; zero where there were none
	Index      op.Ptr     // i32 [Outputs]: the rows whose logits are wanted
	Logits     op.Ptr     // f32 [Outputs,Vocab], written by Forward
	Memory     [][]op.Ptr // the arrays of each entry of Layout.Memory
	Rows       int32      // tokens of the step
	Seqs       int32      // sequences of the step
	Outputs    int32      // rows whose logits are wanted
	MaxBlocks  int32      // blocks that a row of Tables has room for
	Blocks     int32      // blocks of the whole cache
	BlockSize  int32      // tokens of a block
	StateSlots int32      // slots of the memory that sequences have
	KVType     op.DType   // element type of the cache
}

// Source places the weights of a model on its device. Errors are kept and reported together when loading ends, so that a family's
// weights read as a table. A family's constructor runs twice, over two sources: the first only counts bytes, and its addresses are not
// valid; the second places the weights.
type Source interface {
	// Has tells whether the checkpoint has a tensor.
	Has(name string) bool
	// Scheme is how a matrix will be stored once it is loaded.
	Scheme(name string) op.Scheme
	// Matrix stacks the rows of tensors of one scheme, each [Rows,cols], into one weight.
	Matrix(cols int32, parts ...Part) op.Weight
	// Experts makes one weight of count matrices, whose Count it is. The rows of matrix e are those of parts(e).
	Experts(count, cols int32, parts func(e int32) []Part) op.Weight
	// Vector places tensors one after the other as f32.
	Vector(parts ...Part) op.Ptr
	// Values reads a tensor of a shape. A counting pass reads nothing and gives zeros.
	Values(name string, shape ...int32) []float32
	// Floats places computed values as f32.
	Floats(values []float32) op.Ptr
	// Words places computed values as i32.
	Words(values []int32) op.Ptr
	// Buffer takes memory for activations. Its contents are not defined.
	Buffer(bytes int64) op.Ptr
}

// Part is a tensor that gives Rows rows to a matrix, or Rows elements to a vector.
type Part struct {
	Name string  // in the checkpoint, by HuggingFace's names
	Rows int32   // that it gives
	Plus float32 // is added to each element of a vector
	From Pattern // which rows; zero: all
}

// Pattern chooses rows of a tensor: of every Every rows those from First to First+Each-1. The tensor has Every/Each as many rows as it gives.
type Pattern struct{ First, Each, Every int32 }

// Limits is what a model's buffers are made for.
type Limits struct {
	Rows        int32    // most rows in one step
	Drafts      int32    // most drafts of one sequence in a step
	Chunks      int32    // most sequences in a step of which tokens are drawn; only drafters ask
	Activations op.DType // the element type that the kernel set calls act
}
