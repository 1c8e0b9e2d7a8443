package engine

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// Direct runs one sequence at a time through the same steps as an Engine, on the caller's goroutine, for comparing a model
// with references.
type Direct struct{ runner *runner }

// NewDirect takes the memory that Config names. Unless told otherwise it keeps the logits of every row of a step.
func NewDirect(c Config) (*Direct, error) {
	if c.MaxBatchTokens == 0 {
		c.MaxBatchTokens = DefaultBatchTokens
	}
	if c.MaxOutputs == 0 {
		c.MaxOutputs = c.MaxBatchTokens
	}
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	r, err := newRunner(c)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return &Direct{runner: r}, nil
}

// Close gives the memory back.
func (d *Direct) Close() error { return d.runner.close() }

// Logits computes a prompt in chunks of at most chunk tokens (0: as many as fit) and returns the logits after every token,
// [len(tokens),Vocab], or after the last one only.
func (d *Direct) Logits(tokens []int32, chunk int, all bool) ([]float32, error) {
	vocab := int(d.runner.layout.Vocab)
	rows := 1
	if all {
		rows = len(tokens)
	}
	out := make([]float32, rows*vocab)
	_, err := d.run(Request{Prompt: tokens, MaxTokens: 1, PromptLogProbs: all}, chunk, func(p *sched.Plan) {
		for _, c := range p.Chunks {
			if n := scoredRows(c); n > 0 {
				d.runner.readLogits(out[c.Start*vocab:], p.Draws, n)
			}
			if c.Draws > 0 {
				d.runner.readLogits(out[(rows-1)*vocab:], 0, 1)
			}
		}
	})
	return out, err
}

// Greedy returns the n most likely tokens after a prompt, each following from those before.
func (d *Direct) Greedy(tokens []int32, n int) ([]int32, error) {
	return d.run(Request{Prompt: tokens, MaxTokens: n}, 0, func(*sched.Plan) {})
}

// run generates, showing each step while its logits are on the device.
func (d *Direct) run(r Request, chunk int, show func(*sched.Plan)) ([]int32, error) {
	r.Sampling, r.LogProbs = sample.Greedy(), -1
	if err := r.check(d.runner.layout.Vocab); err != nil {
		return nil, err
	}
	c := d.runner.config
	limits := c.limits()
	limits.ChunkTokens = max(chunk, 0)
	s := sched.New(limits, cache.New(c.cacheSizes(), false))
	t := newTask(r, d.runner.layout.Vocab, c.Draws)
	if err := s.Add(&t.sequence); err != nil {
		return nil, err
	}
	for {
		if finish, err := t.sequence.Finish(); finish != sched.Unfinished {
			return slices.Clone(t.sequence.Generated()), err
		}
		p := s.Next()
		if err := d.runner.launch(p, []*task{t}, 0); err != nil {
			return nil, err
		}
		if err := d.runner.finish(); err != nil {
			return nil, err
		}
		results, err := d.runner.collect(p, 0)
		if err != nil {
			return nil, err
		}
		show(p)
		if err := d.runner.stream.Sync(); err != nil {
			return nil, err
		}
		s.Done(p, results)
	}
}
