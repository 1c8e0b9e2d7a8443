// Package optest judges the kernels of any set on any device by the oracle, and measures how fast they are.
//
// A case is one call of an operation: exact sizes, random inputs, results filled with NaN before the call, and noise around every buffer.
// It passes when the results agree with the oracle's within a tolerance and nothing else was written. Further cases run the same rows in
// batches of different sizes, and want the same bits for a row (see rows.go, conversation.go and steps.go). Sizes of buffers come from the
// struct tags of package op.
//
// The files: cases_*.go list the calls that are judged, cases_bench.go and cases_serving.go those that are timed; run.go goes through the
// former; fill*.go makes inputs; side.go runs a call; reference.go asks the oracle; judge.go and compare.go compare results; tolerance.go says
// how far they may differ; bench.go, stopwatch.go and profile.go measure time; tune.go compares the kernels of a manifest with each other.
package optest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Target is a kernel set to be judged.
type Target struct {
	Name   string        // of the hardware, for reports
	Device device.Device // that the kernels run on
	Set    bundle.Set    // the kernels
	Act    op.DType      // the activation type, act in op's tags
	// Exact says that products are computed in f32 from activations that are not rounded to bf16 or to bytes. Tolerances are smaller then.
	Exact bool
	// Together says that a row's bits may depend on how many rows the call has, since kernels for many rows add in another order. Then the
	// cases about a row's bits are left out.
	Together bool
	// Rounds are the kernels that round activations before they multiply them, with the oracle's name of the rule. Their results are
	// compared with those of an oracle that rounds in the same way.
	Rounds map[op.Kernel]string
	// Persistent says that there are persistent kernels: their blocks compute one tile after another. It adds cases with more tiles than
	// blocks.
	Persistent bool
	// Scratch is the scratch memory of a stream, in bytes; 0 means 256 MiB.
	Scratch int64
	// HostMemory says that the device's addresses are this process's own, so that Bench can read them from Go.
	HostMemory bool
}

// Options choose cases.
type Options struct {
	Ops   []string // operations; empty: all
	Match string   // part of a case's name; empty: all
	Seed  uint64   // of the random contents
	Short bool     // leaves out cases that take long
	// Late is called from another goroutine while a case runs that has taken longer than Patience. A kernel that waits for itself never
	// ends, and nothing on the host can stop it: Late can only report it. It may be nil.
	Late     func(op, name string)
	Patience time.Duration
	// Progress is called before each case, with how many are done and how many there are. Targets that share a case are judged by it one after
	// the other, and it counts once. It may be nil.
	Progress func(done, total int, op, name string)
}

// tell calls Progress.
func (o Options) tell(done, total int, op, name string) {
	if o.Progress != nil {
		o.Progress(done, total, op, name)
	}
}

// watch calls Late if done is not called in time.
func (o Options) watch(op, name string) (done func()) {
	if o.Late == nil {
		return func() {}
	}
	t := time.AfterFunc(o.Patience, func() { o.Late(op, name) })
	return func() { t.Stop() }
}

// check reports unknown ops.
func (o Options) check() error {
	known := ops.Names()
	for _, name := range o.Ops {
		if !slices.Contains(known, name) {
			return fmt.Errorf("op %q is unknown (known: %s)", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// wants reports whether a case is to run.
func (o Options) wants(opName, caseName string) bool {
	return (len(o.Ops) == 0 || slices.Contains(o.Ops, opName)) && strings.Contains(caseName, o.Match)
}
