package optest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Timing is how long one call takes, Median and Min of several samples. It is zero where it was not measured.
type Timing struct{ Median, Min time.Duration }

// BenchResult is how fast one case ran.
type BenchResult struct {
	Op      string           // the operation
	Case    string           // its name
	Args    map[string]int64 // sizes and switches: see Shape
	Cold    Timing           // with buffers that are not in a cache, as weights are not when a model runs
	Warm    Timing           // with the same buffers each time, as for activations; only where steps are replayed
	Bytes   int64            // that a call must read and write at least once
	Flops   int64            // of its products; 0 where the operation has none
	Ceiling int64            // bytes per second that the device can read, measured in the same run
	Message string           // why there is no time: no kernels for the scheme, or a failure; else ""
}

// Time is the cold median, or the warm one where the case is too small to be measured cold.
func (r BenchResult) Time() time.Duration {
	if r.Cold.Median > 0 {
		return r.Cold.Median
	}
	return r.Warm.Median
}

// BytesPerSecond is Bytes divided by Time.
func (r BenchResult) BytesPerSecond() float64 { return perSecond(r.Bytes, r.Time()) }

// FlopsPerSecond is Flops divided by Time.
func (r BenchResult) FlopsPerSecond() float64 { return perSecond(r.Flops, r.Time()) }

// Share is BytesPerSecond as a part of the ceiling, from 0 to about 1.
func (r BenchResult) Share() float64 { return r.BytesPerSecond() / float64(max(r.Ceiling, 1)) }

func perSecond(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-12) }

// String is a line with the median and the least time, the bytes a second and their share of a plain read.
func (r BenchResult) String() string {
	if r.Message != "" {
		return fmt.Sprintf("%s %s: %s", r.Op, r.Case, r.Message)
	}
	return fmt.Sprintf("%s %s cold %.1f µs (min %.1f) warm %.1f µs (min %.1f) %.1f GB/s %.0f%% %.1f GFLOP/s", r.Op, r.Case,
		micros(r.Cold.Median), micros(r.Cold.Min), micros(r.Warm.Median), micros(r.Warm.Min),
		r.BytesPerSecond()/1e9, 100*r.Share(), r.FlopsPerSecond()/1e9)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// BenchReport is how fast all cases ran.
type BenchReport struct {
	Target   string        // the target's name
	Replayed bool          // launches were replayed from a recorded step, as an engine does
	Ceiling  int64         // bytes per second
	Method   string        // how the ceiling was measured
	Results  []BenchResult // in the order of the cases
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

// Bench measures a target at the sizes of real models. On a GPU it replays recorded launches, as an engine does; on a CPU it queues them.
// A case that cannot be measured has a Message; the error says why nothing could be.
func Bench(t Target, o Options) (BenchReport, error) {
	report := BenchReport{Target: t.Name}
	if err := o.check(); err != nil {
		return report, err
	}
	j, err := newJudge(&t, o, nil)
	if err != nil {
		return report, err
	}
	defer j.close()
	b, list := newBencher(j), benchCases(o)
	if report.Replayed = b.replays; b.replays {
		list = servingCases(o, b.has)
	}
	before, method, err := b.ceiling()
	if err != nil {
		return report, fmt.Errorf("measuring how fast %s reads: %w", t.Name, err)
	}
	list = slices.DeleteFunc(list, func(c *Case) bool { return !o.wants(c.Op, c.Name) })
	for i, c := range list {
		o.tell(i, len(list), c.Op, c.Name)
		result := BenchResult{Op: c.Op, Case: c.Name, Args: ShapeOf(c.args.Interface()).Args}
		if err := b.bench(c, &result); err != nil {
			result.Message = err.Error()
		}
		report.Results = append(report.Results, result)
	}
	// The ceiling is measured before and after, and the higher one counts: were the machine busy during one, kernels would look too good.
	after, _, err := b.ceiling()
	report.Ceiling, report.Method = max(before, after), method
	for i := range report.Results {
		report.Results[i].Ceiling = report.Ceiling
	}
	return report, err
}

// bencher times cases on the target's side of a judge.
type bencher struct {
	*judge
	clock   stopwatch
	replays bool                // clock replays recorded launches
	tiles   map[op.DType][]byte // random contents, by type
}

// newBencher times replays on devices that record steps, but not on a CPU: other programs use it as well, and a median needs more samples
// than replays give.
func newBencher(j *judge) *bencher {
	b := &bencher{judge: j, clock: queueing{j.target.stream}, tiles: map[op.DType][]byte{}}
	if g, ok := j.Device.(device.Grapher); ok && !j.HostMemory {
		b.clock, b.replays = replaying{g, j.target.stream}, true
	}
	return b
}

// has reports whether the set has kernels for a scheme.
func (b *bencher) has(scheme op.Scheme) bool { return b.Set.PackedBytes(scheme, 256, 256) > 0 }

// bench times a case cold and, where launches are replayed, warm: only replays are exact enough to show the difference.
func (b *bencher) bench(c *Case, result *BenchResult) error {
	s, err := b.stage(c)
	if err != nil {
		return err
	}
	defer b.Device.Free(s.base)
	result.Bytes, result.Flops = c.work(s.fields)
	queue := func(i int) { ops.Call(b.Set, b.target.stream, s.calls[i%len(s.calls)]) }
	if s.cold || !b.replays {
		if result.Cold, err = b.clock.time(len(s.calls), queue); err != nil {
			return err
		}
	}
	if b.replays && len(s.calls) > 1 { // with one call only, its buffers are larger than a cache
		result.Warm, err = b.clock.time(1, func(int) { queue(0) })
	}
	return err
}
