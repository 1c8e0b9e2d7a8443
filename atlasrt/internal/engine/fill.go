package engine

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// fill writes a plan's inputs to the staging buffer. Rows and sequences of a bucket that the plan does not use compute a token
// that is written nowhere, belongs to no sequence and gives no logits.
func (r *runner) fill(p *sched.Plan, tasks []*task, s shape, at inputs) {
	w, size := r.words, r.config.BlockSize
	row, sampled, other := 0, 0, p.Samples
	for i, c := range p.Chunks {
		q := c.Sequence
		blocks := q.Blocks()
		w[at.starts+i] = int32(row)
		w[at.lengths+i] = int32(c.Start + c.Rows)
		table := w[at.tables+i*s.maxBlocks : at.tables+(i+1)*s.maxBlocks]
		clear(table[copy(table, blocks):])
		if c.Follows >= 0 {
			w[at.tokens+row] = int32(-1 - c.Follows) // a reference, see op.Resolve
		} else {
			copy(w[at.tokens+row:], q.Tokens[c.Start:c.Start+c.Rows])
		}
		for t := c.Start; t < c.Start+c.Rows; t++ {
			w[at.positions+row] = int32(t)
			w[at.slots+row] = blocks[t/size]*int32(size) + int32(t%size)
			row++
		}
		// Sampled rows come first among the outputs, so that the sampler reads a dense matrix.
		if c.Sample {
			w[at.index+sampled] = int32(row - 1)
			sampled++
		}
		for o := scoredRows(c); o > 0; o-- {
			w[at.index+other] = int32(row - o - sampleRows(c))
			other++
		}
	}
	w[at.starts+len(p.Chunks)] = int32(row)
	for i := len(p.Chunks); i < s.seqs; i++ {
		w[at.starts+i+1] = int32(row)
		w[at.lengths+i] = 0
		clear(w[at.tables+i*s.maxBlocks : at.tables+(i+1)*s.maxBlocks])
	}
	for ; row < s.rows; row++ {
		w[at.tokens+row], w[at.positions+row], w[at.slots+row] = 0, 0, -1
	}
	for ; other < s.outputs; other++ {
		w[at.index+other] = -1
	}
	r.fillSampling(p, tasks, s, at)
}

// scoredRows is how many of a chunk's outputs are not sampled from.
func scoredRows(c sched.Chunk) int { return c.Outputs - sampleRows(c) }

func sampleRows(c sched.Chunk) int {
	if c.Sample {
		return 1
	}
	return 0
}

func (r *runner) fillSampling(p *sched.Plan, tasks []*task, s shape, at inputs) {
	w := r.words
	i, edit := 0, 0
	for chunk, c := range p.Chunks {
		if !c.Sample {
			continue
		}
		t := tasks[chunk]
		params := &t.request.Sampling
		w[at.seed+2*i], w[at.seed+2*i+1] = int32(params.Seed), int32(params.Seed>>32)
		if w[at.temperature+i] = float(params.Temperature); params.IsGreedy() {
			w[at.temperature+i] = 0
		}
		w[at.topP+i] = float(params.TopP)
		w[at.minP+i] = float(params.MinP)
		w[at.topK+i] = params.TopK
		w[at.position+i] = int32(c.Start + c.Rows)
		w[at.editStarts+i] = int32(edit)
		if e := t.edits; e != nil {
			copy(w[at.editToken+edit:], e.Token)
			for j := range e.Token {
				w[at.editBias+edit+j] = float(e.Bias[j])
				w[at.editFactor+edit+j] = float(e.Factor[j])
				w[at.editOffset+edit+j] = float(e.Offset[j])
			}
			edit += len(e.Token)
		}
		i++
	}
	for ; i < s.samples; i++ {
		w[at.seed+2*i], w[at.seed+2*i+1] = 0, 0
		w[at.temperature+i], w[at.topP+i], w[at.minP+i] = 0, float(1), 0
		w[at.topK+i], w[at.position+i] = 0, 0
		w[at.editStarts+i] = int32(edit)
	}
	w[at.editStarts+s.samples] = int32(edit)
}

func float(v float32) int32 { return int32(math.Float32bits(v)) }
