package optest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Profile is where the time of one step goes.
type Profile struct {
	Tokens    int          // rows of the step
	Sequences int          // sequences of the step
	Step      Timing       // of the whole step, replayed
	Rows      []ProfileRow // those that take longest first
}

// ProfileRow is all calls of an operation in a step that have the same sizes, usually one of each layer.
type ProfileRow struct {
	Op      string   // the operation
	Case    string   // the sizes
	Kernels []string // that one call launches
	Calls   int      // of the step
	Time    Timing   // of one call, measured with the weights of one layer after the other
	Bytes   int64    // that one call must read and write at least
	Flops   int64    // of one call's products
}

// Total is the time of all calls of the row: their number times the median.
func (r ProfileRow) Total() time.Duration { return time.Duration(r.Calls) * r.Time.Median }

// BytesPerSecond is Bytes divided by the median time.
func (r ProfileRow) BytesPerSecond() float64 { return perSecond(r.Bytes, r.Time.Median) }

// FlopsPerSecond is Flops divided by the median time.
func (r ProfileRow) FlopsPerSecond() float64 { return perSecond(r.Flops, r.Time.Median) }

// Profiler is a kernel set that passes calls on to another. It notes the calls of one step, and measures them when the step ends.
//
// It measures on the stream that the model runs on, during the step, so that every buffer holds what the calls expect. It needs a device
// that records steps, and an engine that does not (graph mode none).
type Profiler struct {
	ops.Tap
	act   op.DType
	names map[op.Kernel]string

	mu     sync.Mutex
	device device.Device
	tokens int32 // of the step that is to be measured; zero: none
	seqs   int32 // of that step
	calls  []noted
	result Profile
	err    error
}

// noted is a call of the step that is being queued.
type noted struct {
	args    any
	kernels []op.Kernel
}

// NewProfiler makes one around a set with activations of type act; points are its kernels by name. It measures nothing until Expect.
func NewProfiler(set bundle.Set, points map[string]op.Kernel, act op.DType) *Profiler {
	p := &Profiler{names: map[op.Kernel]string{}, act: act}
	for name, k := range points {
		p.names[k] = name
	}
	p.Set, p.Each = set, p.call
	return p
}

// Expect asks for the next step with so many tokens and sequences, all of which sample, to be measured.
func (p *Profiler) Expect(d device.Device, tokens, sequences int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.device, p.tokens, p.seqs, p.calls = d, int32(tokens), int32(sequences), nil
	p.result, p.err = Profile{}, fmt.Errorf("no step read %d tokens of %d sequences (are there as many, and enough tokens?)", tokens, sequences)
}

// Result is the profile of the step that was expected, or why there is none.
func (p *Profiler) Result() (Profile, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result, p.err
}

// call passes a call on. A step begins with Embedding, or with what makes its inputs right before it, and ends with Sample.
func (p *Profiler) call(q op.Stream, args any) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch args.(type) {
	case op.Pack, op.Unpack:
		return ops.Call(p.Set, q, args)
	case op.Embedding:
		p.begin()
	}
	served := p.note(q, args)
	if x, ok := args.(op.Sample); ok {
		p.end(q, x)
	}
	return served
}

// note passes a call on, and notes it if a step is to be measured and the call was served.
func (p *Profiler) note(q op.Stream, args any) bool {
	if p.tokens == 0 {
		return ops.Call(p.Set, q, args)
	}
	l := &listener{Stream: q}
	served := ops.Call(p.Set, l, args)
	if served {
		p.calls = append(p.calls, noted{args, l.kernels})
	}
	return served
}

// begin drops the calls that were noted before a step, except what makes its inputs right before it.
func (p *Profiler) begin() {
	first := len(p.calls)
	for ; first > 0; first-- {
		switch p.calls[first-1].args.(type) {
		case op.Resolve, op.Advance:
			continue
		}
		break
	}
	p.calls = slices.Delete(p.calls, 0, first)
}

// end measures the step if it is the one that is wanted.
func (p *Profiler) end(q op.Stream, x op.Sample) {
	if s, ok := q.(device.Stream); ok && p.tokens > 0 && x.Rows == p.seqs && p.reads(p.tokens) {
		p.tokens = 0
		p.result, p.err = p.measure(s)
	}
	p.calls = p.calls[:0]
}

// listener is a stream that notes which kernels are launched.
type listener struct {
	op.Stream
	kernels []op.Kernel
}

func (l *listener) Launch(k op.Kernel, g op.Grid) {
	l.kernels = append(l.kernels, k)
	l.Stream.Launch(k, g)
}

// reads reports whether the step has so many rows.
func (p *Profiler) reads(tokens int32) bool {
	return slices.ContainsFunc(p.calls, func(n noted) bool {
		x, ok := n.args.(op.Embedding)
		return ok && x.Rows == tokens
	})
}

// measure times the step that was noted, each kind of call and all of them.
func (p *Profiler) measure(s device.Stream) (result Profile, err error) {
	g, ok := p.device.(device.Grapher)
	if !ok {
		return result, errors.New("this device records no steps, which is how they are measured")
	}
	clock := replaying{g, s}
	step := func(int) {
		for _, n := range p.calls {
			ops.Call(p.Set, s, n.args)
		}
	}
	var order []string
	groups := map[string][]noted{}
	for _, n := range p.calls {
		name := reflect.TypeOf(n.args).Name() + " " + Sizes(n.args)
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], n)
	}
	result.Sequences = int(p.calls[len(p.calls)-1].args.(op.Sample).Rows)
	for _, n := range p.calls {
		if x, ok := n.args.(op.Embedding); ok {
			result.Tokens = int(x.Rows)
		}
	}
	for _, name := range order {
		calls := groups[name]
		step(0) // the measurements before have changed buffers: the step writes them again
		row := ProfileRow{Op: reflect.TypeOf(calls[0].args).Name(), Case: Sizes(calls[0].args), Calls: len(calls)}
		for _, k := range calls[0].kernels {
			row.Kernels = append(row.Kernels, p.names[k])
		}
		if row.Bytes, row.Flops, err = p.work(s, calls[0].args); err != nil {
			return result, err
		}
		row.Time, err = clock.time(len(calls), func(i int) { ops.Call(p.Set, s, calls[i%len(calls)].args) })
		if err != nil {
			return result, fmt.Errorf("%s: %w", name, err)
		}
		result.Rows = append(result.Rows, row)
	}
	slices.SortStableFunc(result.Rows, func(a, b ProfileRow) int { return cmp.Compare(b.Total(), a.Total()) })
	result.Step, err = clock.time(1, step)
	step(0)
	return result, err
}

// work is the bytes and products of a call whose buffers are filled.
func (p *Profiler) work(s device.Stream, args any) (bytes, flops int64, err error) {
	c, list, err := called(p.Set, p.act, args)
	if err != nil {
		return 0, 0, err
	}
	// They depend on the lengths of sequences and on the choice of experts, which are read from the device.
	for _, f := range list {
		if f.name == "Starts" && f.role == in || f.name == "Lengths" {
			data := make([]byte, f.bytes())
			s.Read(data, op.Ptr(c.args.FieldByName(f.name).Uint()))
			c.values[f.name] = data
		}
	}
	if err := s.Sync(); err != nil {
		return 0, 0, err
	}
	bytes, flops = c.work(list)
	return bytes, flops, nil
}

// Ceiling measures how many bytes per second a target can move, and says how it was measured.
func Ceiling(t Target) (bytesPerSecond int64, method string, err error) {
	j, err := newJudge(&t, Options{}, nil)
	if err != nil {
		return 0, "", err
	}
	defer j.close()
	return newBencher(j).ceiling()
}
