package engine

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// graphKey is every size that the kernels of a recorded step were launched with. Such a step is a decode step: rows,
// sequences, outputs and samples are one number.
type graphKey struct {
	rows, maxBlocks int
	sampled         bool // sampling is part of it
}

// replays tells whether a plan is run by replaying a recorded step.
func (r *runner) replays(p *sched.Plan) bool {
	return r.graphs != nil && p.Decode() && p.Outputs == p.Rows
}

// forward queues the step that was staged: recorded where that can be, recording it when its sizes are new.
func (r *runner) forward(p *sched.Plan, s shape) error {
	if !r.replays(p) {
		r.queueStep()
		return nil
	}
	// How many logits are edited changes from step to step, so sampling with edits is queued behind the recorded part.
	key := graphKey{rows: s.rows, maxBlocks: s.maxBlocks, sampled: s.edits == 0}
	g, ok := r.graphs[key]
	if !ok {
		var err error
		record := r.queue
		if !key.sampled {
			record = func() { r.config.Model.Forward(r.stream, &r.step) }
		}
		if g, err = r.config.Device.(device.Grapher).Capture(r.stream, record); err != nil {
			return fmt.Errorf("record a step of %d rows (--no-graphs runs without): %w", s.rows, err)
		}
		r.graphs[key] = g
	}
	g.Replay(r.stream)
	if !key.sampled {
		r.config.Set.Sample(r.stream, r.sample)
	}
	return nil
}
