package optest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// BenchResult is how fast one case ran.
type BenchResult struct {
	Op      string
	Case    string
	Median  time.Duration // of one call
	Min     time.Duration
	Bytes   int64  // that a call must read and write at least once
	Flops   int64  // of its products; 0 where they do not matter
	Ceiling int64  // bytes per second that the device can read, measured in the same run
	Message string // why there is no time: no kernels for the scheme, or a failure
}

// BytesPerSecond is by the median time.
func (r BenchResult) BytesPerSecond() float64 { return perSecond(r.Bytes, r.Median) }

// FlopsPerSecond is by the median time.
func (r BenchResult) FlopsPerSecond() float64 { return perSecond(r.Flops, r.Median) }

// Share is the part of the measured ceiling that the median reaches.
func (r BenchResult) Share() float64 { return r.BytesPerSecond() / float64(max(r.Ceiling, 1)) }

func perSecond(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-12) }

func (r BenchResult) String() string {
	if r.Message != "" {
		return fmt.Sprintf("%s %s: %s", r.Op, r.Case, r.Message)
	}
	return fmt.Sprintf("%s %s %.1f µs (min %.1f) %.1f GB/s %.0f%% %.1f GFLOP/s", r.Op, r.Case, micros(r.Median), micros(r.Min),
		r.BytesPerSecond()/1e9, 100*r.Share(), r.FlopsPerSecond()/1e9)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// BenchReport is how fast all cases ran.
type BenchReport struct {
	Target  string
	Ceiling int64  // bytes per second
	Method  string // how the ceiling was measured
	Results []BenchResult
}

// String is a line for each case, after one about the ceiling.
func (r BenchReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %.1f GB/s, %s\n", r.Target, float64(r.Ceiling)/1e9, r.Method)
	for _, result := range r.Results {
		fmt.Fprintln(&b, result)
	}
	return b.String()
}

// How a case is timed: samples of several calls until both are reached.
const (
	fewestSamples = 5
	sampleTime    = 2 * time.Millisecond
	caseTime      = 200 * time.Millisecond
	mostCalls     = 1000 // in one sample: streams hold a limited number of launches
)

// coldBytes is the size of all copies of a case's buffers that calls take turns with, so that weights come from memory
// as they do when a model runs, and not from a cache.
const coldBytes, mostCopies = 256 << 20, 512

// Bench measures a target at sizes of real models.
func Bench(t Target, o Options) (BenchReport, error) {
	report := BenchReport{Target: t.Name}
	if err := o.check(); err != nil {
		return report, err
	}
	j, err := newJudge(&t, o)
	if err != nil {
		return report, err
	}
	defer j.close()
	before, method, err := j.ceiling()
	if err != nil {
		return report, fmt.Errorf("measuring how fast %s reads: %w", t.Name, err)
	}
	for _, c := range benchCases(o) {
		if o.wants(c.Op, c.Name) {
			report.Results = append(report.Results, j.bench(c))
		}
	}
	// Twice, and the better one: whatever else the machine does must not make kernels look good.
	after, _, err := j.ceiling()
	report.Ceiling, report.Method = max(before, after), method
	for i := range report.Results {
		report.Results[i].Ceiling = report.Ceiling
	}
	return report, err
}

func (j *judge) bench(c *Case) BenchResult {
	result := BenchResult{Op: c.Op, Case: c.Name}
	p, err := j.prepare(c)
	if err != nil {
		result.Message = err.Error()
		return result
	}
	result.Bytes, result.Flops = p.work()
	calls, free, err := j.copies(p)
	defer free()
	if err == nil {
		result.Median, result.Min, err = j.time(calls)
	}
	if err != nil {
		result.Message = err.Error()
	}
	return result
}

// copies places the buffers of a case several times.
func (j *judge) copies(p *prepared) (calls []any, free func(), err error) {
	var bases []op.Ptr
	free = func() {
		for _, base := range bases {
			j.Device.Free(base)
		}
	}
	places, size := layout(p.fields)
	image := make([]byte, size)
	for _, place := range places {
		copy(image[place.offset:], p.target[place.name])
	}
	for range min(coldBytes/size+1, mostCopies) {
		base, err := j.Device.Alloc(size)
		if err != nil {
			return nil, free, err
		}
		bases = append(bases, base)
		if err := j.Device.CopyIn(base, image); err != nil {
			return nil, free, err
		}
		calls = append(calls, j.target.bind(p.Case, places, base).Interface())
	}
	return calls, free, nil
}

// time measures calls, in turn.
func (j *judge) time(calls []any) (median, least time.Duration, err error) {
	next := 0
	sample := func(n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			invoke(j.Set, j.target.stream, calls[next%len(calls)])
			next++
		}
		err := j.target.stream.Sync()
		return time.Since(start), err
	}
	if _, err := sample(1); err != nil {
		return 0, 0, err
	}
	n := 1
	for {
		d, err := sample(n)
		if err != nil {
			return 0, 0, err
		}
		if d >= sampleTime || n == mostCalls {
			break
		}
		n = min(2*n, mostCalls)
	}
	var times []time.Duration
	for total := time.Duration(0); len(times) < fewestSamples || total < caseTime; {
		d, err := sample(n)
		if err != nil {
			return 0, 0, err
		}
		total += d
		times = append(times, d/time.Duration(n))
	}
	slices.Sort(times)
	return times[len(times)/2], times[0], nil
}

// work is the bytes and products of a call: each buffer once, or twice where it is read and written, and of stacked
// weights and caches only what the call has to touch.
func (p *prepared) work() (bytes, flops int64) {
	for _, f := range p.fields {
		n := int64(f.count) * int64(f.inner) * f.dtype.Bytes()
		if f.role == inout {
			n *= 2
		}
		bytes += n
	}
	of := func(name string) int64 { return int64(len(p.target[name])) }
	w, _ := p.weight()
	products := 2 * int64(w.Rows) * int64(w.Cols)
	switch x := p.args.Interface().(type) {
	case op.Linear:
		flops = products * int64(x.Rows)
	case op.Logits:
		flops = products * int64(x.Rows)
	case op.Embedding:
		bytes -= of("W.Data") - of("W.Data")*int64(x.Rows)/int64(w.Rows)
	case op.ExpertUp:
		bytes -= of("W.Data") - of("W.Data")*p.used()/int64(w.Count)
		flops = products * int64(x.Rows*x.TopK)
	case op.ExpertDown:
		bytes -= of("W.Data") - of("W.Data")*p.used()/int64(w.Count)
		flops = products * int64(x.Rows*x.TopK)
	case op.RotaryCache:
		bytes -= 2*of("K") + 2*of("V") - 2*int64(x.Rows*x.KVHeads*x.HeadDim)*x.KVType.Bytes()
	case op.PagedAttention:
		starts, lengths, pairs, tokens := get[int32](p.target["Starts"]), get[int32](p.target["Lengths"]), int64(0), int64(0)
		for s, length := range lengths {
			tokens += int64(length)
			for row := starts[s]; row < starts[s+1]; row++ {
				pairs += int64(length - (starts[s+1] - row) + 1)
			}
		}
		bytes -= of("K") + of("V") - 2*tokens*int64(x.KVHeads*x.HeadDim)*x.KVType.Bytes()
		flops = 4 * pairs * int64(x.Heads*x.HeadDim)
	}
	return bytes, flops
}

// used is how many experts have a pick.
func (c *Case) used() int64 {
	ids := slices.Clone(c.ids)
	slices.Sort(ids)
	return int64(len(slices.Compact(ids)))
}
