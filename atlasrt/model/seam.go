package model

import "github.com/atlas-inference/atlas/atlasrt/op"

// Seam is a stream that replays a forward pass in pieces, and is told what lies between them.
//
// What a model queues between BeginLive and EndLive is launched anew in every step. Everything else must depend on no
// size of Inputs but Rows and Outputs, and be queued in the same order each time.
type Seam interface {
	// BeginLive ends a piece, and EndLive begins the next one: what lies between them is launched anew.
	BeginLive()
	EndLive()
}

// BeginLive says that what follows depends on how many sequences there are or how long they are.
func BeginLive(q op.Stream) {
	if s, ok := q.(Seam); ok {
		s.BeginLive()
	}
}

// EndLive ends what BeginLive began.
func EndLive(q op.Stream) {
	if s, ok := q.(Seam); ok {
		s.EndLive()
	}
}
