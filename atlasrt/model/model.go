// Package model says what a model is to the engine: how much it keeps per token, and one forward pass over a ragged
// batch of rows. Families live in folders below, each with its config, its weights and its forward pass.
package model

import "github.com/atlas-inference/atlas/atlasrt/op"

// Model is a loaded network.
type Model interface {
	// Layout is what the engine plans memory by. It never changes.
	Layout() Layout
	// Forward queues one step. It only queues: nothing has run when it returns.
	Forward(q op.Stream, in *Inputs)
}

// Layout is what a model keeps and takes.
type Layout struct {
	KV         []KV // one per layer that keeps keys and values
	Vocab      int32
	MaxContext int32 // tokens that positions are defined for
}

// KV is what one layer keeps per token: KVHeads keys and as many values of HeadDim elements.
type KV struct{ Heads, HeadDim int32 }

// Inputs is one step. Every Ptr is device memory that the engine owns; the ints are capacities.
//
// Prefill, chunk, decode and verify rows are one ragged batch: see op.PagedAttention for Starts, Lengths and Tables, and
// op.RotaryCache for Slots.
type Inputs struct {
	Tokens    op.Ptr  // i32 [Rows]
	Positions op.Ptr  // i32 [1,Rows]
	Slots     op.Ptr  // i32 [Rows]
	Starts    op.Ptr  // i32 [Seqs+1]
	Lengths   op.Ptr  // i32 [Seqs]
	Tables    op.Ptr  // i32 [Seqs,MaxBlocks]
	Index     op.Ptr  // i32 [Outputs]: the rows whose logits are wanted
	Logits    op.Ptr  // f32 [Outputs,Vocab], written by Forward
	Cache     []Cache // one per entry of Layout.KV
	Rows      int32
	Seqs      int32
	Outputs   int32
	MaxBlocks int32
	Blocks    int32
	BlockSize int32
	KVType    op.DType
}

// Cache is where one layer's keys and values lie: each [Blocks,KVHeads,BlockSize,HeadDim] of Inputs.KVType.
type Cache struct{ K, V op.Ptr }

// Source places the weights of a model on its device. Errors are kept and reported together when loading ends, so that
// a family's weights read as a table. A first pass over a Source only counts: its pointers must not be read.
type Source interface {
	// Scheme is how a matrix will be stored once it is loaded.
	Scheme(name string) op.Scheme
	// Matrix stacks the rows of tensors of one scheme, each [Rows,cols], into one weight.
	Matrix(cols int32, parts ...Part) op.Weight
	// Experts stacks count matrices, the e-th made of parts(e), into one weight with a Count.
	Experts(count, cols int32, parts func(e int32) []Part) op.Weight
	// Vector places tensors one behind the other as f32.
	Vector(parts ...Part) op.Ptr
	// Values reads an optional tensor of n elements; nil where the checkpoint has none.
	Values(name string, n int32) []float32
	// Floats places computed values as f32.
	Floats(values []float32) op.Ptr
	// Buffer takes memory for activations.
	Buffer(bytes int64) op.Ptr
}

// Part is a tensor that gives Rows rows to a matrix, or Rows elements to a vector.
type Part struct {
	Name string
	Rows int32
}

// Limits is what a model's buffers are made for.
type Limits struct {
	Rows        int32    // most rows in one step
	Activations op.DType // act of the kernel set
}
