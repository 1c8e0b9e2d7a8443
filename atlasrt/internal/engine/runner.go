package engine

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// runner carries plans out on the device: it owns the stream, the cache's memory and the buffers of a step.
//
// launch queues a step and collect waits for it; each follows the other. It allocates nothing per step.
type runner struct {
	config Config
	layout model.Layout
	stream device.Stream
	owned  []op.Ptr // every allocation

	words   []int32 // inputs of a step, staged for one copy
	staging op.Ptr
	logits  op.Ptr // f32 [MaxOutputs,Vocab]
	sampled op.Ptr // i32 [MaxSequences]
	tokens  []int32

	step   model.Inputs // of the step in flight
	sample op.Sample
	queue  func()
	graphs map[graphKey]device.Graph // nil where steps are not recorded
}

// newRunner takes all memory that steps need. The config must be complete.
func newRunner(c Config) (*runner, error) {
	r := &runner{config: c, layout: c.Model.Layout()}
	r.queue = r.queueStep
	if _, ok := c.Device.(device.Grapher); ok && !c.NoGraphs {
		r.graphs = make(map[graphKey]device.Graph)
	}
	if err := r.allocate(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *runner) allocate() (err error) {
	c := r.config
	take := func(bytes int64, what string) (p op.Ptr) {
		if err != nil {
			return 0
		}
		if p, err = c.Device.Alloc(bytes); err != nil {
			err = fmt.Errorf("%d bytes for %s: %w", bytes, what, err)
			return 0
		}
		r.owned = append(r.owned, p)
		return p
	}
	if r.stream, err = c.Device.Stream(c.ScratchBytes); err != nil {
		return fmt.Errorf("a stream with %d bytes of scratch: %w", c.ScratchBytes, err)
	}
	for i, kv := range r.layout.KV {
		bytes := int64(c.Blocks) * keyBytes(kv, c.BlockSize, c.KVType)
		r.step.Cache = append(r.step.Cache, model.Cache{
			K: take(bytes, fmt.Sprintf("the keys of layer %d", i)),
			V: take(bytes, fmt.Sprintf("the values of layer %d", i)),
		})
	}
	n := need(c, r.layout)
	bytes := n.inputBytes()
	r.words = make([]int32, bytes/4)
	r.tokens = make([]int32, c.MaxSequences)
	r.staging = take(bytes, "the inputs of a step")
	r.sampled = r.staging + op.Ptr(bytes) - op.Ptr(4*c.MaxSequences)
	r.logits = take(n.logitBytes(), "logits")
	return err
}

// close gives everything back.
func (r *runner) close() error {
	var errs []error
	for _, g := range r.graphs {
		errs = append(errs, g.Close())
	}
	if r.stream != nil {
		errs = append(errs, r.stream.Close())
	}
	for _, p := range r.owned {
		r.config.Device.Free(p)
	}
	return errors.Join(errs...)
}

// launch stages a plan's inputs and queues its forward pass and sampling. Tasks are found by their sequences' tags.
func (r *runner) launch(p *sched.Plan, tasks []*task) error {
	s := r.shape(p, tasks)
	at := s.layout()
	r.fill(p, tasks, s, at)
	r.point(s, at)
	r.stream.Write(r.staging, bytesOf(r.words[:at.words]))
	return r.forward(p, s)
}

// collect waits for the step in flight and returns its sampled tokens, valid until the next launch.
func (r *runner) collect(p *sched.Plan) ([]int32, error) {
	tokens := r.tokens[:p.Samples]
	if len(tokens) > 0 {
		r.stream.Read(bytesOf(tokens), r.sampled)
	}
	return tokens, r.stream.Sync()
}

// readLogits copies the logits of output rows of the step that was collected last.
func (r *runner) readLogits(to []float32, row, rows int) {
	vocab := int(r.layout.Vocab)
	r.stream.Read(bytesOf(to[:rows*vocab]), r.logits+op.Ptr(4*row*vocab))
}

// shape is what the kernels are launched with: in a decode step that can be replayed rounded up to a bucket.
func (r *runner) shape(p *sched.Plan, tasks []*task) shape {
	s := shape{rows: p.Rows, seqs: len(p.Chunks), outputs: p.Outputs, samples: p.Samples}
	for _, c := range p.Chunks {
		s.maxBlocks = max(s.maxBlocks, divideUp(c.Start+c.Rows, r.config.BlockSize))
		if c.Sample {
			s.edits += tasks[c.Sequence.Tag].edits.Len()
		}
	}
	s.maxBlocks = bucketBlocks(s.maxBlocks, divideUp(r.config.MaxContext, r.config.BlockSize))
	if r.replays(p) {
		n := bucketRows(s.rows, r.config.MaxSequences)
		s.rows, s.seqs, s.outputs, s.samples = n, n, n, n
	}
	return s
}

// point tells the model and the sampler where the inputs lie.
func (r *runner) point(s shape, at inputs) {
	word := func(i int) op.Ptr { return r.staging + op.Ptr(4*i) }
	r.step = model.Inputs{
		Tokens: word(at.tokens), Positions: word(at.positions), Slots: word(at.slots),
		Starts: word(at.starts), Lengths: word(at.lengths), Tables: word(at.tables), Index: word(at.index),
		Logits: r.logits, Cache: r.step.Cache,
		Rows: int32(s.rows), Seqs: int32(s.seqs), Outputs: int32(s.outputs), MaxBlocks: int32(s.maxBlocks),
		Blocks: int32(r.config.Blocks), BlockSize: int32(r.config.BlockSize), KVType: r.config.KVType,
	}
	r.sample = op.Sample{
		Out: r.sampled, Logits: r.logits,
		Temperature: word(at.temperature), TopP: word(at.topP), MinP: word(at.minP), TopK: word(at.topK),
		Seed: word(at.seed), Position: word(at.position), EditStarts: word(at.editStarts),
		EditToken: word(at.editToken), EditBias: word(at.editBias), EditFactor: word(at.editFactor), EditOffset: word(at.editOffset),
		Rows: int32(s.samples), Vocab: r.layout.Vocab, Edits: int32(s.edits),
	}
}

// queueStep queues the step that point described.
func (r *runner) queueStep() {
	r.config.Model.Forward(r.stream, &r.step)
	if r.sample.Rows > 0 {
		r.config.Set.Sample(r.stream, r.sample)
	}
}

// bytesOf is the memory of words. Devices and their hosts are little endian.
func bytesOf[T int32 | float32](words []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
