package engine

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// runner carries plans out on the device: it owns the stream, the cache's memory and the buffers of a step.
//
// launch queues a step and collect waits for it, in the same order. Where the device overlaps, the next step may be launched
// first: tokens that it continues from are looked up on the device, among those that the step before sampled. It allocates
// nothing per step.
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
	boxes   []device.Mailbox // one for each step that may be in flight; none where the device does not overlap

	inputs  op.Resolve // what the step that was launched last is made of
	step    model.Inputs
	sample  op.Sample
	results op.Copy
	forward func(op.Stream) // queues the forward pass
	whole   func()          // queues all of the step

	recorder *recorder
	waiting  func() // what is not to wait until a step is recorded, which takes longer than to run it; or nil
	pieces   *pieces
	sizes    []int // of decode steps that are recorded
}

// overlapping is how many steps are in flight on a device that works while the host does.
const overlapping = 2

// newRunner takes all memory that steps need. The config must be complete.
func newRunner(c Config) (r *runner, err error) {
	r = &runner{config: c, layout: c.Model.Layout(), recorder: newRecorder(c), sizes: decodeSizes(c)}
	r.forward = r.queueForward
	r.whole = func() {
		r.queueInputs()
		r.queueForward(r.stream)
		r.queueResults()
	}
	if err := r.allocate(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.pieces = &pieces{Stream: r.stream}
	if c.CaptureAtStart {
		r.captureAll()
	}
	return r, nil
}

// depth is how many steps may be in flight.
func (r *runner) depth() int { return max(len(r.boxes), 1) }

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
	bytes := n.stepBytes()
	r.words = make([]int32, bytes/4)
	r.tokens = make([]int32, c.MaxSequences)
	r.staging = take(bytes, "the inputs of a step")
	r.sampled = r.staging + op.Ptr(bytes) - op.Ptr(4*c.MaxSequences)
	r.logits = take(n.logitBytes(), "logits")
	if err != nil {
		return err
	}
	// The one place that decides whether steps overlap.
	if d, ok := c.Device.(device.Overlapper); ok && !c.NoOverlap {
		for range overlapping {
			box, err := d.Mailbox(r.stream, int(n.sentBytes()), 4*c.MaxSequences)
			if err != nil {
				return fmt.Errorf("memory for inputs and sampled tokens: %w", err)
			}
			r.boxes = append(r.boxes, box)
		}
	}
	return nil
}

// close gives everything back. No step may be in flight.
func (r *runner) close() error {
	errs := r.recorder.forget()
	for _, box := range r.boxes {
		errs = append(errs, box.Close())
	}
	if r.stream != nil {
		errs = append(errs, r.stream.Close())
	}
	for _, p := range r.owned {
		r.config.Device.Free(p)
	}
	return errors.Join(errs...)
}

// launch stages a plan's inputs and queues the step. tasks are those of its chunks, number is how many steps were launched
// before.
func (r *runner) launch(p *sched.Plan, tasks []*task, number int) error {
	s := r.shape(p, tasks)
	s.box = number % r.depth()
	at := s.layout()
	r.fill(p, tasks, s, at)
	r.point(s, at)
	if len(r.boxes) == 0 {
		r.write(0, at.words)
		r.queue(s)
		return nil
	}
	box, words := r.boxes[s.box], at.unedited()
	r.write(words, at.words) // which few steps have, and may be many
	box.Send(bytesOf(r.words[:words]))
	r.queue(s)
	return box.Post(4 * p.Samples)
}

// write copies staged words behind what is queued.
func (r *runner) write(from, to int) {
	if from < to {
		r.stream.Write(r.staging+op.Ptr(4*from), bytesOf(r.words[from:to]))
	}
}

// collect waits for a step that was launched, and returns its sampled tokens, valid until the next collect.
func (r *runner) collect(p *sched.Plan, number int) ([]int32, error) {
	tokens := r.tokens[:p.Samples]
	if len(r.boxes) > 0 {
		came, err := r.boxes[number%len(r.boxes)].Wait()
		copy(bytesOf(tokens), came)
		return tokens, err
	}
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

// shape is what the kernels are launched with: in a step that can be replayed rounded up to a bucket.
func (r *runner) shape(p *sched.Plan, tasks []*task) shape {
	c := &r.config
	s := shape{rows: p.Rows, seqs: len(p.Chunks), outputs: p.Outputs, samples: p.Samples, recording: r.recorder.mixed}
	for i, chunk := range p.Chunks {
		s.maxBlocks = max(s.maxBlocks, divideUp(chunk.Start+chunk.Rows, c.BlockSize))
		if chunk.Sample {
			s.edits += tasks[i].edits.Len()
		}
	}
	s.maxBlocks = bucketBlocks(s.maxBlocks, divideUp(c.MaxContext, c.BlockSize))
	if p.Decode() && p.Outputs == p.Rows {
		s.decode, s.recording = true, r.recorder.decode
		i, _ := slices.BinarySearch(r.sizes, s.rows)
		if i == len(r.sizes) {
			s.recording = Eager
		}
		if s.recording != Eager {
			n := r.sizes[i]
			s.rows, s.seqs, s.outputs, s.samples = n, n, n, n
		}
	} else if s.recording == Piecewise {
		s.rows = bucketRows(s.rows, c.MaxBatchTokens)
		if s.outputs > 0 {
			s.outputs = min(powerOfTwo(s.outputs), max(c.MaxOutputs, c.MaxSequences))
		}
	}
	return s
}

// point tells every part of a step where its inputs lie.
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
	r.inputs = op.Resolve{
		Out: r.staging, Sampled: r.sampled, Count: int32(at.unedited()), Rows: int32(s.rows), Samples: int32(r.config.MaxSequences),
	}
	r.results = op.Copy{In: r.sampled, Bytes: 4 * int64(s.samples)}
	if len(r.boxes) > 0 {
		r.inputs.In, r.results.Out = r.boxes[s.box].Inputs(), r.boxes[s.box].Results()
	}
}

// queueInputs queues what takes inputs out of the mailbox.
func (r *runner) queueInputs() {
	if len(r.boxes) > 0 {
		r.config.Set.Resolve(r.stream, r.inputs)
	}
}

// queueForward queues the forward pass of the step that point described.
func (r *runner) queueForward(q op.Stream) {
	r.config.Model.Forward(q, &r.step)
}

// queueResults queues sampling, and what puts the tokens into the mailbox.
func (r *runner) queueResults() {
	if r.sample.Rows == 0 {
		return
	}
	r.config.Set.Sample(r.stream, r.sample)
	if len(r.boxes) > 0 {
		r.config.Set.Copy(r.stream, r.results)
	}
}

// bytesOf is the memory of words. Devices and their hosts are little endian.
func bytesOf[T int32 | float32](words []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
