package engine

import (
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
)

// queue queues what launch does of a step: replayed where it is recorded, and recorded where it should be.
//
// What is recorded whole begins and ends with a mailbox. A step that needs late inputs is recorded up to sampling, for how
// large they are changes from step to step. Of steps in pieces inputs and results are queued anew.
func (r *runner) queue() {
	s := r.step.shape
	graphs := r.recorded(s)
	switch {
	case graphs == nil:
		r.whole()
	case s.recording == Piecewise:
		r.queueInputs()
		r.pieces.run(graphs, r.forward)
		if !s.late {
			r.queueResults()
		}
		r.recorder.replayedParts.Add(1)
	default:
		graphs[0].Replay(r.stream)
		r.recorder.replayedFull.Add(1)
	}
}

// recorded is the step that was prepared, recorded now if need be; nil where it is not to be replayed.
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

// capture records the step that was prepared; nil where that fails.
func (r *runner) capture(s shape) (graphs []device.Graph) {
	if r.waiting != nil {
		r.waiting()
	}
	var err error
	d := r.recorder.device
	if s.recording == Piecewise {
		graphs, err = r.pieces.capture(d, r.forward)
	} else {
		var g device.Graph
		if g, err = d.Capture(r.stream, r.whole); err == nil {
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

// depths are the numbers of drafts that decode steps compute, and make as many.
func (r *runner) depths() (list []int) {
	most := r.config.Draws - 1
	for drafts := range r.config.Draws {
		if drafts == 0 || drafts == most || !r.config.FixedDrafts {
			list = append(list, drafts)
		}
	}
	return list
}

// captureAll records decode steps of every size, number of drafts and mailbox, before any request comes, and says what they take.
func (r *runner) captureAll() {
	begin := time.Now()
	before, _ := r.config.Device.Memory()
	defer func() {
		after, _ := r.config.Device.Memory()
		r.config.Log.Info("decode steps are recorded", "recordings", r.recorder.captures.Load(), "bytes", max(before-after, 0), "seconds", time.Since(begin).Seconds())
	}()
	longest := divideUp(r.config.MaxContext, r.config.BlockSize)
	for _, n := range r.sizes {
		for blocks := bucketBlocks(1, longest); ; blocks = bucketBlocks(blocks+1, longest) {
			for box := range r.flights() {
				for _, drafts := range r.depths() {
					s := shape{maxBlocks: blocks, box: box, recording: r.recorder.decode, decode: true, drafts: drafts}
					s.decodes(n, drafts+1)
					r.prepare(s, nil, nil)
					r.recorded(s)
				}
			}
			if blocks == longest {
				break
			}
		}
	}
}
