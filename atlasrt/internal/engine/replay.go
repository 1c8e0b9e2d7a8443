package engine

import (
	"errors"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
)

// queue queues the step that point described, which goes through a mailbox: replayed where it is recorded, and recorded
// where it should be.
func (r *runner) queue(s shape, box int) {
	graphs := r.recorded(s)
	r.through(box)
	switch {
	case graphs == nil:
		r.whole()
	case s.recording == Piecewise:
		r.queueInputs()
		r.pieces.run(graphs, r.forward)
		r.queueResults()
		r.recorder.replayedParts.Add(1)
	default:
		graphs[box].Replay(r.stream)
		if !s.key().sampled {
			r.queueResults()
		}
		r.recorder.replayedFull.Add(1)
	}
}

// recorded is the step that point described, recorded now if need be; nil where it is not to be replayed.
func (r *runner) recorded(s shape) []device.Graph {
	if s.recording == Eager {
		return nil
	}
	graphs, record := r.recorder.find(s)
	if record {
		return r.capture(s)
	}
	return graphs
}

// capture records the step that point described; nil where that fails.
func (r *runner) capture(s shape) []device.Graph {
	if r.waiting != nil {
		r.waiting()
	}
	record := r.captureWhole
	if s.recording == Piecewise {
		record = r.capturePieces
	}
	graphs, err := record(s)
	if err != nil {
		r.recorder.weaken(s, err)
		return nil
	}
	r.recorder.keep(s, graphs)
	return graphs
}

// capturePieces records what lies between attentions. Inputs and results are queued beside pieces, for their sizes change.
func (r *runner) capturePieces(shape) ([]device.Graph, error) {
	return r.pieces.capture(r.recorder.device, r.forward)
}

// captureWhole records a step once for each mailbox, whose addresses are part of it. How many logits are edited changes from
// step to step: sampling with edits, and what follows it, is queued behind what is recorded.
func (r *runner) captureWhole(s shape) (graphs []device.Graph, err error) {
	record := r.whole
	if !s.key().sampled {
		record = func() {
			r.queueInputs()
			r.queueForward(r.stream)
		}
	}
	for box := range r.depth() {
		r.through(box)
		g, err := r.recorder.device.Capture(r.stream, record)
		if err != nil {
			return nil, errors.Join(append(closeAll(graphs), err)...)
		}
		graphs = append(graphs, g)
	}
	return graphs, nil
}

// captureAll records decode steps of every size, before any request comes, and says what they take.
func (r *runner) captureAll() {
	begin := time.Now()
	before, _ := r.config.Device.Memory()
	defer func() {
		after, _ := r.config.Device.Memory()
		r.config.Log.Info("decode steps are recorded", "sizes", r.recorder.captures.Load(), "bytes", max(before-after, 0), "seconds", time.Since(begin).Seconds())
	}()
	longest := divideUp(r.config.MaxContext, r.config.BlockSize)
	for _, n := range r.sizes {
		for blocks := bucketBlocks(1, longest); ; blocks = bucketBlocks(blocks+1, longest) {
			s := shape{rows: n, seqs: n, outputs: n, samples: n, maxBlocks: blocks, recording: r.recorder.decode, decode: true}
			if s.recording == Eager {
				return
			}
			r.point(s, s.layout())
			if graphs, record := r.recorder.find(s); record && graphs == nil {
				r.capture(s)
			}
			if blocks == longest {
				break
			}
		}
	}
}
