// Package device is the interface to a processor and its memory: untyped buffers, compiled kernels and streams.
//
// Package op says what a kernel computes; this package says only how memory is taken and how launches are queued. Package cpu runs
// kernels on this machine's processor, cuda on NVIDIA GPUs, and host serves kernel sets that are written in Go. What not every
// device can do is an interface of its own (Grapher, Overlapper), which callers ask for with a type assertion.
package device

import "github.com/atlas-inference/atlas/atlasrt/op"

// Device is one processor with its memory. Its methods may be called from any goroutine.
type Device interface {
	// Alloc takes a buffer of zeros. Its address is a multiple of 64.
	Alloc(bytes int64) (op.Ptr, error)
	// Free gives back what Alloc took. Nothing that is queued may still use it.
	Free(p op.Ptr)
	// CopyIn and CopyOut have copied when they return. They are not ordered with any stream: Sync first.
	CopyIn(to op.Ptr, from []byte) error
	CopyOut(to []byte, from op.Ptr) error
	// Load makes the kernels of a compiled image callable.
	Load(image []byte) (Module, error)
	// Stream makes a queue with one scratch buffer of so many bytes, which its launches use one after the other.
	Stream(scratch int64) (Stream, error)
	// Memory is how many bytes are free, and how many there are.
	Memory() (free, total int64)
	// Close gives all memory back. Close graphs, mailboxes and streams first.
	Close() error
}

// Module is a loaded image.
type Module interface {
	// Kernel finds an entry point by name.
	Kernel(name string) (op.Kernel, error)
}

// Stream is a queue of launches and copies that take effect in order. One goroutine at a time owns it.
type Stream interface {
	op.Stream
	// Write copies to the device in queue order. When it returns, from may change.
	Write(to op.Ptr, from []byte)
	// WriteAll writes every piece, with several goroutines and in any order: pieces must not overlap. Bytes of a mapped file that
	// cannot be read cause a panic, here as in Write (see mapping.Guard).
	WriteAll(pieces []Piece)
	// Read copies from the device in queue order, and waits for it.
	Read(to []byte, from op.Ptr)
	// Sync waits for all that was queued and returns the first error since the last Sync.
	Sync() error
	// Close gives the stream's memory back. Sync first: what is still queued may not run.
	Close() error
}

// Grapher is a device that can record a step once and replay it many times.
type Grapher interface {
	// Capture records what step queues on s instead of running it. A step may queue launches, and nothing that waits or copies.
	Capture(s Stream, step func()) (Graph, error)
}

// Graph is a recorded step. A replay has the addresses, sizes and grids of the recording; only what lies in memory may differ.
type Graph interface {
	// Replay queues the step on s, which is the stream that it was recorded on.
	Replay(s Stream)
	// Close gives back what the recording takes. No replay of it may be in flight.
	Close() error
}

// Overlapper is a device that runs what is queued while the host does something else. There it pays to queue a step before the
// results of the last one are read. A CPU is none: its kernels need the processors that the host would use.
type Overlapper interface {
	// Mailbox makes one for steps of s with so many bytes of inputs and of results. Close it before s.
	Mailbox(s Stream, inputs, results int) (Mailbox, error)
}

// Mailbox is memory that host and device both reach. A step's inputs and results pass through it, so that no copy has to be queued
// between two steps.
//
// A mailbox serves one step at a time: Send, launches, Post, Wait. After an error call the stream's Sync instead of Wait. One
// goroutine at a time owns it.
type Mailbox interface {
	// Send writes the inputs of the next step, while steps queued before may still run. Launches queued from now on read them at Inputs.
	Send(inputs []byte)
	// Inputs and Results are where kernels read and write. The addresses never change, so that a recorded step may use them.
	Inputs() op.Ptr
	Results() op.Ptr
	// Post marks the end of the step, whose launches write at most so many bytes of results. It returns the stream's first error
	// since the last Sync: after one, nothing that was queued runs.
	Post(bytes int) error
	// Wait waits until the step has run; what was queued later may still run. The results are valid until the next Send.
	Wait() ([]byte, error)
	// Close gives the memory back. The steps that use it must have run.
	Close() error
}
