package optest_test

import (
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// The figures of two cases whose work is easy to count.
func TestBenchCountsWork(t *testing.T) {
	cases := []struct {
		op, match    string
		bytes, flops int64
	}{
		{"Linear", "SmolLM2-135M bf16 down 576×1536 rows 1", 576*1536*2 + 1536*4 + 576*4, 2 * 576 * 1536},
		{"PagedAttention", "SmolLM2-135M decode at 1024", 2*1024*3*64*2 + 2*9*64*4 + 4*(2+1+65), 4 * 1024 * 9 * 64},
	}
	for _, c := range cases {
		r := bench(t, target(oracle.New(op.F32), op.F32), c.op, c.match)
		if r.Message != "" || r.Bytes != c.bytes || r.Flops != c.flops {
			t.Errorf("%s: got %d bytes, %d flops, want %d and %d", r, r.Bytes, r.Flops, c.bytes, c.flops)
		}
		if r.Cold.Min <= 0 || r.Cold.Median < r.Cold.Min || r.Warm.Median != 0 || r.Ceiling <= 0 || r.Share() <= 0 {
			t.Errorf("%s: times %v and ceiling %d make no sense", r, r.Cold, r.Ceiling)
		}
	}
}

// bench measures one case.
func bench(t *testing.T, target optest.Target, op, match string) optest.BenchResult {
	t.Helper()
	report, err := optest.Bench(target, optest.Options{Ops: []string{op}, Match: match, Short: true})
	if err != nil || len(report.Results) != 1 {
		t.Fatalf("%s %s: got %d results, %v, want one", op, match, len(report.Results), err)
	}
	return report.Results[0]
}

// recorder is a device that records steps and pretends to replay them.
type recorder struct {
	device.Device
	shows          bool // what a step queues is run once
	captured, open *int
}

func (d recorder) Capture(_ device.Stream, step func()) (device.Graph, error) {
	*d.captured++
	*d.open++
	if d.shows {
		step()
	}
	return recording{d.open}, nil
}

type recording struct{ open *int }

func (r recording) Replay(device.Stream) { time.Sleep(20 * time.Microsecond) }
func (r recording) Close() error         { *r.open--; return nil }

// quick is the oracle where what a case computes does not matter: only what it is given.
type quick struct {
	*oracle.Set
	calls map[op.Ptr]int // of Linear, by the address of its weights
}

func (q *quick) Linear(s op.Stream, x op.Linear) {
	if q.calls[x.W.Data]++; q.calls[x.W.Data] == 1 {
		q.Set.Linear(s, x)
	}
}

// Where steps can be recorded, launches are replayed: over many copies of the buffers, then over one.
func TestBenchReplays(t *testing.T) {
	captured, open := 0, 0
	set := &quick{oracle.New(op.BF16), map[op.Ptr]int{}}
	x := target(set, op.BF16)
	x.Device, x.HostMemory = recorder{x.Device, true, &captured, &open}, false
	r := bench(t, x, "Linear", "bf16 64×256 rows 5")
	bytes, flops := int64(2*(64*256+5*256+5*64)), int64(2*5*64*256)
	if r.Message != "" || r.Bytes != bytes || r.Flops != flops {
		t.Errorf("%s: got %d bytes, %d flops, want %d and %d", r, r.Bytes, r.Flops, bytes, flops)
	}
	// A time is the difference of two: where nearly nothing is done, it can come to nothing.
	if r.Cold.Min < 0 || r.Cold.Median < r.Cold.Min || r.Warm.Min < 0 || r.Warm.Median < r.Warm.Min || r.Ceiling <= 0 {
		t.Errorf("%s: times %v, %v and ceiling %d make no sense", r, r.Cold, r.Warm, r.Ceiling)
	}
	if captured == 0 || open != 0 {
		t.Errorf("%d steps were recorded and %d left open, want some and none", captured, open)
	}
	if len(set.calls) < 200 {
		t.Errorf("calls took turns with %d copies of the weights, want many", len(set.calls))
	}
}

// Every case of the list can be staged and runs.
func TestBenchServes(t *testing.T) {
	captured, open := 0, 0
	x := target(oracle.New(op.BF16), op.BF16)
	x.Device, x.HostMemory = recorder{x.Device, false, &captured, &open}, false
	ops := []string{"Logits", "ExpertUp", "ExpertDown", "Route", "PagedAttention", "RMSNorm", "SwiGLU", "RotaryCache", "Sample", "CausalConv", "DeltaRule", "GatedNorm", "DeltaNet"}
	report, err := optest.Bench(x, optest.Options{Ops: ops, Short: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range report.Results {
		seen[r.Op] = true
		if r.Message != "" {
			t.Error(r)
		}
	}
	if len(seen) != len(ops) {
		t.Errorf("cases of %d ops, want %d", len(seen), len(ops))
	}
}
