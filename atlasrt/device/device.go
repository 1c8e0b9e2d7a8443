// Package device is the narrow waist under op: untyped memory, kernels and streams.
package device

import "github.com/atlas-inference/atlas/atlasrt/op"

// Device is one processor with its memory. Its methods may be called from any goroutine.
type Device interface {
	// Alloc takes memory, zeroed and 64-byte aligned at least.
	Alloc(bytes int64) (op.Ptr, error)
	Free(p op.Ptr)
	// CopyIn and CopyOut move bytes at once; they are not ordered with any stream.
	CopyIn(to op.Ptr, from []byte) error
	CopyOut(to []byte, from op.Ptr) error
	// Load makes the kernels of a compiled image callable.
	Load(image []byte) (Module, error)
	// Stream makes a queue whose launches may use up to scratch bytes between them.
	Stream(scratch int64) (Stream, error)
	// Memory reports what is free and what there is, in bytes.
	Memory() (free, total int64)
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
	// Write and Read copy in queue order. Read has finished when it returns; Write no longer needs from.
	Write(to op.Ptr, from []byte)
	// WriteAll is a Write of each piece. They must not overlap: several goroutines may copy them in any order. A page of a
	// mapping that cannot be read is a panic here, as it would be in Write: see mapping.Guard.
	WriteAll(pieces []Piece)
	Read(to []byte, from op.Ptr)
	// Sync waits for all that was queued and returns the first error since the last Sync.
	Sync() error
	Close() error
}

// Grapher is a device that can record a step once and replay it.
type Grapher interface {
	// Capture records what step queues on s instead of running it.
	Capture(s Stream, step func()) (Graph, error)
}

// Graph is a recorded step. Replaying reads the same addresses with the same sizes.
type Graph interface {
	// Replay queues the step on s, which is the stream that it was recorded on.
	Replay(s Stream)
	// Close gives back what the recording takes. No replay of it may be in flight.
	Close() error
}

// Overlapper is a device that runs what is queued while the host does something else, so that it pays to queue a step
// before the results of the last one are read. Devices whose kernels take the host's own processors are none.
type Overlapper interface {
	// Mailbox makes one for steps of s with so many bytes of inputs and of results. Close it before s.
	Mailbox(s Stream, inputs, results int) (Mailbox, error)
}

// Mailbox is what a step's inputs and results pass through beside the stream, so that neither stands between two steps. It
// serves one step at a time: Send, Post, Wait; or, where an error comes between, the stream's Sync. One goroutine at a time owns
// it.
type Mailbox interface {
	// Send brings inputs while what was queued before still runs. What is queued from now on finds them at Inputs.
	Send(inputs []byte)
	// Inputs and Results are where kernels read and write. They stay, so that a recorded step finds them.
	Inputs() op.Ptr
	Results() op.Ptr
	// Post ends the step: all that was queued for it, which may have written so many bytes of results. It returns the
	// stream's first error since the last Sync: after one, nothing that was queued runs.
	Post(bytes int) error
	// Wait waits for the step, and for nothing that was queued later. It lends the results until the next Send.
	Wait() ([]byte, error)
	Close() error
}
