package model

import "github.com/atlas-inference/atlas/atlasrt/op"

// Seam is a stream that replays a forward pass in recorded pieces (the graph mode "piecewise"). Between two pieces it launches.
//
// What a model queues between BeginLive and EndLive is launched in every step. Everything else is replayed: it must be queued in the same
// order each time, and of the sizes of Inputs it may depend on Rows and Outputs alone.
type Seam interface {
	// BeginLive ends a piece, and EndLive begins the next one. Launches between them are not recorded.
	BeginLive()
	EndLive()
}

// BeginLive says that the launches that follow depend on how many sequences there are, or on how long they are: attention does.
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
