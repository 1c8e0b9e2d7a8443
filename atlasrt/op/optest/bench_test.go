package optest_test

import (
	"testing"

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
		report, err := optest.Bench(target(oracle.New(op.F32), op.F32), optest.Options{Ops: []string{c.op}, Match: c.match, Short: true})
		if err != nil || len(report.Results) != 1 {
			t.Fatalf("%s %s: got %d results, %v, want one", c.op, c.match, len(report.Results), err)
		}
		r := report.Results[0]
		if r.Message != "" || r.Bytes != c.bytes || r.Flops != c.flops {
			t.Errorf("%s: got %d bytes, %d flops, want %d and %d", r, r.Bytes, r.Flops, c.bytes, c.flops)
		}
		if r.Min <= 0 || r.Median < r.Min || r.Ceiling <= 0 || r.Share() <= 0 {
			t.Errorf("%s: times %v and %v and ceiling %d make no sense", r, r.Median, r.Min, r.Ceiling)
		}
	}
}
