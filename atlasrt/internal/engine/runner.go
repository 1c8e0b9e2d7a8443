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
// launch and finish queue a step and collect waits for it, in the same order. Where the device overlaps, the next step may be
// launched first: tokens that it continues from are looked up on the device, among those that the step before left. It
// allocates nothing per step.
//
// Where a step may draw several tokens of a sequence, op.Accept follows sampling, in queueResults, and finds out which draws count; then a
// drafter writes the tokens of the next step's rows. That step, if it was queued without knowing the counts, starts with op.Advance.
type runner struct {
	config Config
	layout model.Layout
	stream device.Stream
	owned  []op.Ptr // every allocation

	// The device's memory of a step, i32 but for logits. In staging lie the inputs and, at its end, what the step leaves, one behind the other:
	//
	//	last      [MaxSequences]            where Draws > 1: see model.Drafting
	//	passes    [3·(Draws-2),MaxSequences]  where Draws > 2: positions, then slots, then lengths of drafting passes
	//	next      [Draws,MaxSequences]      where Draws > 1: what the next step's tokens refer to
	//	counts    [MaxSequences]            where Draws > 1: how many draws of each chunk count
	//	sampled   [MaxSequences·Draws]      the draws; next, too, where Draws is 1
	//
	// The host reads from next on.
	staging, next, counts, sampled op.Ptr
	logits                         op.Ptr // f32 [MaxOutputs,Vocab]

	inputs  inputs
	words   []int32          // inputs of a step, staged for one copy
	results []int32          // what the host has read of the step that was collected last
	boxes   []device.Mailbox // one for each step that may be in flight; none where the device does not overlap

	step    launches        // the step that was launched last
	ahead   lookahead       // of its draws
	early   int             // words of its inputs that launch sends
	forward func(op.Stream) // queues the forward pass
	whole   func()          // queues what launch queues

	recorder *recorder
	waiting  func() // what is not to wait until a step is recorded, which takes longer than to run it; or nil
	pieces   *pieces
	sizes    []int // of decode steps that are recorded
}

// overlapping is how many steps are in flight on a device that works while the host does.
const overlapping = 2

// newRunner takes all memory that steps need. The config must be complete.
func newRunner(c Config) (r *runner, err error) {
	r = &runner{config: c, layout: c.Model.Layout(), inputs: stepInputs(c.Model.Layout(), c.Draws), recorder: newRecorder(c), sizes: decodeSizes(c)}
	r.forward = func(q op.Stream) { r.config.Model.Forward(q, &r.step.forward) }
	r.whole = func() {
		r.queueInputs()
		r.forward(r.stream)
		if !r.step.late {
			r.queueResults()
		}
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

// flights is how many steps may be in flight.
func (r *runner) flights() int { return max(len(r.boxes), 1) }

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
	n, sizes := need(c, r.layout), c.cacheSizes()
	held := map[model.Kind]int64{model.PerToken: int64(sizes.Blocks) * int64(sizes.BlockSize), model.PerSequence: int64(sizes.Slots)}
	var memory [][]op.Ptr
	for i, kept := range n.memory() {
		arrays := make([]op.Ptr, len(kept.Arrays))
		for j, a := range kept.Arrays {
			arrays[j] = take(held[kept.Kind]*arrayBytes(a, c.KVType), fmt.Sprintf("array %d of what %s keeps", j, r.keeper(i)))
		}
		memory = append(memory, arrays)
	}
	bytes := n.stepBytes()
	r.words = make([]int32, bytes/4)
	r.results = make([]int32, n.resultWords())
	r.staging = take(bytes, "the inputs of a step")
	r.sampled = r.staging + op.Ptr(bytes) - op.Ptr(4*c.MaxSequences*c.Draws)
	if r.next = r.sampled; c.Draws > 1 {
		r.counts = r.sampled - op.Ptr(4*c.MaxSequences)
		r.next = r.counts - op.Ptr(4*c.MaxSequences*c.Draws)
	}
	r.logits = take(n.logitBytes(), "logits")
	if err != nil {
		return err
	}
	// All steps have these in common; prepare adds the rest.
	layers := len(r.layout.Memory)
	r.step.forward = model.Inputs{Logits: r.logits, Memory: memory[:layers:layers], KVType: c.KVType,
		Blocks: int32(sizes.Blocks), BlockSize: int32(sizes.BlockSize), StateSlots: int32(sizes.Slots)}
	r.step.sample = op.Sample{Out: r.sampled, Logits: r.logits, Vocab: r.layout.Vocab}
	r.step.resolve = op.Resolve{Out: r.staging, In: r.staging, Sampled: r.next, Samples: int32(c.MaxSequences * c.Draws)}
	r.step.advance = op.Advance{Counts: r.counts, Chunks: int32(c.MaxSequences), BlockSize: int32(c.BlockSize)}
	r.drafts(memory[layers:])
	r.step.results = op.Copy{In: r.next}
	// The one place that decides whether steps overlap.
	if d, ok := c.Device.(device.Overlapper); ok && !c.NoOverlap {
		for range overlapping {
			box, err := d.Mailbox(r.stream, int(n.sentBytes()), 4*n.resultWords())
			if err != nil {
				return fmt.Errorf("memory for inputs and drawn tokens: %w", err)
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

// launch sends a plan's early inputs and queues the step: the forward pass alone where it needs late inputs, otherwise all of it.
// tasks are those of the plan's chunks, number is how many steps were launched before. finish must follow.
func (r *runner) launch(p *sched.Plan, tasks []*task, number int) error {
	s := r.shape(p, tasks)
	s.box = number % r.flights()
	r.prepare(s, p.Chunks, tasks)
	if len(r.boxes) == 0 {
		r.write(0, r.early)
	} else {
		r.boxes[s.box].Send(bytesOf(r.words[:r.early]))
	}
	r.queue()
	if r.step.late {
		return nil
	}
	return r.post()
}

// finish writes the late inputs of the step that was launched last and queues sampling. The step before must have been booked.
// It does nothing where launch queued all of the step.
func (r *runner) finish() error {
	l := &r.step
	if !l.late {
		return nil
	}
	l.findLate(r.results, &r.ahead)
	for _, row := range l.rows {
		l.edits += row.edits.Len()
		if row.mask != nil {
			l.masks++
		}
	}
	l.sample.Edits, l.sample.Masks = int32(l.edits), int32(l.masks)
	r.write(r.early, l.stage(r.inputs.late, r.words, r.staging, r.early))
	r.queueResults()
	return r.post()
}

// post ends the step that was launched last.
func (r *runner) post() error {
	if len(r.boxes) == 0 {
		return nil
	}
	return r.boxes[r.step.box].Post(4 * (r.headWords() + len(r.step.sampled)))
}

// headWords is how many words lie in front of a step's draws, from next on.
func (r *runner) headWords() int { return int(r.sampled-r.next) / 4 }

// write copies staged words behind what is queued.
func (r *runner) write(from, to int) {
	if from < to {
		r.stream.Write(r.staging+op.Ptr(4*from), bytesOf(r.words[from:to]))
	}
}

// collect waits for a step that was launched, and returns what it gave, valid until the next collect.
func (r *runner) collect(p *sched.Plan, number int) (results sched.Results, err error) {
	head := r.headWords()
	words := r.results[:head+p.Draws]
	if results.Tokens = words[head:]; head > 0 {
		results.Counts = words[head-r.config.MaxSequences:][:p.Drawing]
	}
	if len(r.boxes) > 0 {
		came, err := r.boxes[number%len(r.boxes)].Wait()
		copy(bytesOf(words), came)
		return results, err
	}
	if p.Draws > 0 {
		r.stream.Read(bytesOf(words), r.step.results.In)
	}
	return results, r.stream.Sync()
}

// readLogits copies the logits of output rows of the step that was collected last.
func (r *runner) readLogits(to []float32, row, rows int) {
	vocab := int(r.layout.Vocab)
	r.stream.Read(bytesOf(to[:rows*vocab]), r.logits+op.Ptr(4*row*vocab))
}

// shape is what the kernels are launched with: in a step that can be replayed rounded up to a bucket.
func (r *runner) shape(p *sched.Plan, tasks []*task) shape {
	c := &r.config
	s := shape{rows: p.Rows, seqs: len(p.Chunks), outputs: p.Outputs, drawing: p.Drawing, samples: p.Draws, drafts: p.Drafts, recording: r.recorder.mixed}
	longest := 0
	for i := range p.Chunks {
		chunk := &p.Chunks[i]
		longest = max(longest, chunk.Start+chunk.Slack+chunk.Rows)
		s.late = s.late || chunk.Draws > 0 && tasks[i].late()
	}
	s.maxBlocks = bucketBlocks(divideUp(longest, c.BlockSize), divideUp(c.MaxContext, c.BlockSize))
	if p.Decode() && p.Outputs == p.Rows {
		s.decode, s.recording = true, r.recorder.decode
		i, _ := slices.BinarySearch(r.sizes, s.seqs)
		if i == len(r.sizes) || p.Most != p.Drafts+1 { // between two depths, which is seldom
			s.recording = Eager
		}
		if s.recording != Eager {
			s.decodes(r.sizes[i], p.Most)
		}
	} else if s.recording == Piecewise {
		s.rows = bucketRows(s.rows, c.MaxBatchTokens)
		if s.outputs > 0 {
			s.outputs = min(powerOfTwo(s.outputs), c.MaxOutputs)
		}
	}
	return s
}

// prepare makes a step: its launches, and the inputs that are sent before them.
func (r *runner) prepare(s shape, chunks []sched.Chunk, tasks []*task) {
	l := &r.step
	l.batch = batch{shape: s, chunks: chunks, tasks: tasks, sampled: l.sampled[:0], rows: l.rows[:0], block: r.config.BlockSize, pitch: r.config.MaxSequences}
	for i := range chunks {
		for range chunks[i].Draws {
			l.sampled, l.rows = append(l.sampled, tasks[i]), append(l.rows, late{})
		}
	}
	l.forward.Rows, l.forward.Seqs, l.forward.Outputs, l.forward.MaxBlocks = int32(s.rows), int32(s.seqs), int32(s.outputs), int32(s.maxBlocks)
	l.sample.Rows, l.sample.Edits, l.sample.Masks = int32(s.samples), 0, 0
	r.early = l.stage(r.inputs.early, r.words, r.staging, 0)
	if !s.late {
		r.early = l.stage(r.inputs.late, r.words, r.staging, r.early)
	}
	l.resolve.Count, l.resolve.Rows = int32(r.early), int32(s.rows)
	l.results.Bytes = 4 * int64(r.headWords()+s.samples)
	f, a := &l.forward, &l.advance
	a.Positions, a.Slots, a.Lengths, a.Accepted, a.Starts, a.Tables = f.Positions, f.Slots, f.Lengths, f.Accepted, f.Starts, f.Tables
	a.DrawPositions, a.Rows, a.Draws, a.Seqs, a.MaxBlocks = l.sample.Position, f.Rows, l.sample.Rows, f.Seqs, f.MaxBlocks
	if r.config.Drafter != nil {
		l.prepareDrafts()
	}
	if len(r.boxes) > 0 {
		l.resolve.In, l.results.Out = r.boxes[s.box].Inputs(), r.boxes[s.box].Results()
	}
}

// queueInputs queues what takes inputs out of the mailbox, and what the step before left for this one.
func (r *runner) queueInputs() {
	drafts := r.config.Drafter != nil
	if len(r.boxes) > 0 || drafts {
		r.config.Set.Resolve(r.stream, r.step.resolve)
	}
	if len(r.boxes) > 0 && drafts {
		r.config.Set.Advance(r.stream, r.step.advance)
	}
}

// queueResults queues sampling and drafting, and what puts the tokens into the mailbox.
func (r *runner) queueResults() {
	draws := r.step.sample.Rows > 0
	if draws {
		r.config.Set.Sample(r.stream, r.step.sample)
	}
	if r.config.Drafter != nil {
		r.queueDrafts()
	}
	if draws && len(r.boxes) > 0 {
		r.config.Set.Copy(r.stream, r.step.results)
	}
}

// signed is words as arrays of a step have them.
func signed(words []uint32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// bytesOf is the memory of words. Devices and their hosts are little endian.
func bytesOf[T int32 | float32](words []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
