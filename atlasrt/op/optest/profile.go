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
	Step
	Time     Timing       // of the whole step, replayed
	Drafting Timing       // of its calls behind the draws, which accept drafts and make new ones; zero: there are none
	Rows     []ProfileRow // those that take longest first
}

// Step is what a step reads and makes.
type Step struct {
	Tokens    int  // rows
	Sequences int  // all of which draw tokens
	Draws     int  // tokens that the model draws: as many as there are sequences for prompts, one for each row where rows have drafts
	Drafts    int  // that are made for each sequence behind the draws
	Trimmed   bool // drafts are of a part of the vocabulary, and so looked up
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
	want   Step    // that is to be measured; without tokens: none
	draws  int     // launches of Sample of the step that is being queued
	drawn  int     // rows of the first of them
	calls  []noted // of that step
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

// Expect asks for the next step that is as the wanted one to be measured.
func (p *Profiler) Expect(d device.Device, want Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.device, p.want, p.draws, p.calls = d, want, 0, nil
	p.result, p.err = Profile{}, fmt.Errorf("no step read %d tokens of %d sequences (are there as many, and enough tokens?)", want.Tokens, want.Sequences)
}

// Result is the profile of the step that was expected, or why there is none.
func (p *Profiler) Result() (Profile, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result, p.err
}

// call passes a call on, and notes it if a step is to be measured and the call was served.
func (p *Profiler) call(q op.Stream, args any) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch args.(type) {
	case op.Pack, op.Unpack:
		return ops.Call(p.Set, q, args)
	}
	if p.want.Tokens == 0 {
		return ops.Call(p.Set, q, args)
	}
	l := &listener{Stream: q}
	served := ops.Call(p.Set, l, args)
	if served {
		p.begin(args)
		p.calls = append(p.calls, noted{args, l.kernels})
		p.end(q, args)
	}
	return served
}

// begin drops the calls before a step when its second call comes. A step begins with Embedding, or with what makes its inputs right before
// it. Where NormPair follows, the embedding is that of a head, which drafts behind the draws of a step.
func (p *Profiler) begin(args any) {
	first := len(p.calls) - 1
	if first < 0 {
		return
	}
	if _, ok := p.calls[first].args.(op.Embedding); !ok {
		return
	}
	if _, head := args.(op.NormPair); head {
		return
	}
	for ; first > 0; first-- {
		switch p.calls[first-1].args.(type) {
		case op.Resolve, op.Advance:
			continue
		}
		break
	}
	p.calls, p.draws = slices.Delete(p.calls, 0, first), 0
}

// end measures the step if it is the one that is wanted. It ends with Sample, that of its last draft where it has drafts; behind that comes
// Lookup where drafts are looked up.
func (p *Profiler) end(q op.Stream, args any) {
	_, looked := args.(op.Lookup)
	x, drawn := args.(op.Sample)
	if drawn {
		if p.draws++; p.draws == 1 {
			p.drawn = int(x.Rows)
		}
	}
	if last := looked || drawn && (p.want.Drafts == 0 || !p.want.Trimmed); !last || p.draws <= p.want.Drafts {
		return
	}
	if s, ok := q.(device.Stream); ok && (looked || int(x.Rows) == p.want.Sequences) && p.drawn == p.want.Draws && p.reads(p.want.Tokens) {
		p.result, p.err = p.measure(s)
		p.want = Step{}
	}
	p.calls, p.draws = p.calls[:0], 0
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

// reads reports whether the step that is being queued has so many rows.
func (p *Profiler) reads(tokens int) bool {
	i := slices.IndexFunc(p.calls, func(n noted) bool { _, ok := n.args.(op.Embedding); return ok })
	return i >= 0 && int(p.calls[i].args.(op.Embedding).Rows) == tokens
}

// measure times the step that was noted, each kind of call and all of them.
func (p *Profiler) measure(s device.Stream) (result Profile, err error) {
	g, ok := p.device.(device.Grapher)
	if !ok {
		return result, errors.New("this device records no steps, which is how they are measured")
	}
	clock := replaying{g, s}
	replay := func(calls []noted) func(int) {
		return func(int) {
			for _, n := range calls {
				ops.Call(p.Set, s, n.args)
			}
		}
	}
	step := replay(p.calls)
	var order []string
	groups := map[string][]noted{}
	for _, n := range p.calls {
		name := reflect.TypeOf(n.args).Name() + " " + Sizes(n.args)
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], n)
	}
	result.Step = p.want
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
	if result.Time, err = clock.time(1, step); err != nil {
		return result, err
	}
	step(0)
	if i := slices.IndexFunc(p.calls, func(n noted) bool { _, ok := n.args.(op.Accept); return ok }); i >= 0 {
		result.Drafting, err = clock.time(1, replay(p.calls[i:]))
	}
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
