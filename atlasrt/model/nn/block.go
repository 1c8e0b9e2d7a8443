package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Block is one addition to the residual stream: h += after(body(before(h))).
type Block struct {
	Before Norm  // through which Body reads the stream
	Body   Body  // a Mixer, or a network that works on each row by itself
	After  *Norm // of what Body gives; nil: none
}

// Body is what a block does. It ends with one of the additions that Residual has.
type Body interface {
	// Place takes memory for the body's activations. It is called twice: the first time only to learn how much that is.
	Place(r *Room)
	// Forward queues the body's launches.
	Forward(q op.Stream, in *model.Inputs, h *Residual)
}

// Mixer is a body that mixes the rows of a sequence, and so keeps something of earlier rows.
type Mixer interface {
	Body
	// Keep tells what the mixer keeps, and lets it know the number of its entry in Layout.Memory and Inputs.Memory.
	Keep(number int) model.Memory
}

// Room is memory for activations of one body. All bodies have the same memory, since one is at work at a time.
type Room struct {
	next op.Ptr
	rows int64 // most of a step
	act  op.DType
}

// Act takes columns of activations for each row.
func (r *Room) Act(columns int32) op.Ptr { return r.take(r.rows * int64(columns) * r.act.Bytes()) }

// Words takes columns of 32 bits for each row.
func (r *Room) Words(columns int32) op.Ptr { return r.take(r.rows * int64(columns) * 4) }

// List takes 32-bit words.
func (r *Room) List(words int32) op.Ptr { return r.take(int64(words) * 4) }

func (r *Room) take(bytes int64) op.Ptr {
	const align = 64
	at := r.next
	r.next += op.Ptr((bytes + align - 1) &^ (align - 1))
	return at
}

// place gives all bodies their memory.
func place(src model.Source, blocks []Block, limits model.Limits) {
	most := op.Ptr(0)
	for _, b := range blocks {
		room := Room{rows: int64(limits.Rows), act: limits.Activations}
		b.Body.Place(&room)
		most = max(most, room.next)
	}
	shared := src.Buffer(int64(most))
	for _, b := range blocks {
		b.Body.Place(&Room{next: shared, rows: int64(limits.Rows), act: limits.Activations})
	}
}
