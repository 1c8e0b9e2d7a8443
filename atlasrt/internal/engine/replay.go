package engine

import (
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
)

// queue queues the step that point described: replayed where it is recorded, and recorded where it should be.
func (r *runner) queue(s shape) {
	if s.recording == Eager {
		r.whole()
		return
	}
	graphs, record := r.recorder.find(s)
	if record {
		graphs = r.capture(s)
	}
	if graphs == nil {
		r.whole()
		return
	}
	r.replay(s, graphs)
}

// replay queues a recorded step. How many logits are edited changes from step to step, so sampling with edits is queued behind
// what is recorded, as it is behind pieces.
func (r *runner) replay(s shape, graphs []device.Graph) {
	if s.recording == Piecewise {
		r.pieces.run(graphs, r.forward)
		r.queueSample()
		r.recorder.replayedParts.Add(1)
		return
	}
	graphs[0].Replay(r.stream)
	if !s.key().sampled {
		r.queueSample()
	}
	r.recorder.replayedFull.Add(1)
}

// capture records the step that point described; nil where that fails.
func (r *runner) capture(s shape) (graphs []device.Graph) {
	if r.waiting != nil {
		r.waiting()
	}
	var err error
	d := r.recorder.device
	if s.recording == Piecewise {
		graphs, err = r.pieces.capture(d, r.forward)
	} else {
		record := r.whole
		if !s.key().sampled {
			record = func() { r.forward(r.stream) }
		}
		var g device.Graph
		if g, err = d.Capture(r.stream, record); err == nil {
			graphs = []device.Graph{g}
		}
	}
	if err != nil {
		r.recorder.weaken(s, err)
		return nil
	}
	r.recorder.keep(s, graphs)
	return graphs
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
