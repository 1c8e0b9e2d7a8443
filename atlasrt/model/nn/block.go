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

// Storer is a mixer that can take rows in without computing what it gives for them.
type Storer interface {
	Mixer
	// Store queues the part of Forward after which the mixer keeps the step's rows.
	Store(q op.Stream, in *model.Inputs, h *Residual)
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

// place gives bodies their memory. It is that of an earlier call, where that is enough.
func (b *Builder) place(bodies ...interface{ Place(r *Room) }) {
	room := Room{rows: int64(b.limits.Rows), act: b.limits.Activations}
	most := op.Ptr(0)
	for _, body := range bodies {
		counting := room
		body.Place(&counting)
		most = max(most, counting.next)
	}
	if most > b.room {
		b.shared, b.room = b.src.Buffer(int64(most)), most
	}
	room.next = b.shared
	for _, body := range bodies {
		own := room
		body.Place(&own)
	}
}

// placeBlocks gives the bodies of blocks their memory.
func (b *Builder) placeBlocks(blocks []Block) {
	bodies := make([]interface{ Place(r *Room) }, len(blocks))
	for i, block := range blocks {
		bodies[i] = block.Body
	}
	b.place(bodies...)
}
