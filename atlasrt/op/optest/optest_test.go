package optest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/generated/ops"
)

func target(set bundle.Set, act op.DType) optest.Target {
	return optest.Target{Name: "test", Device: host.New(0), Set: set, Act: act, Exact: true, Scratch: 1, HostMemory: true}
}

func run(t *testing.T, target optest.Target, o optest.Options) optest.Report {
	t.Helper()
	reports, err := optest.Run([]optest.Target{target}, o)
	if err != nil {
		t.Fatal(err)
	}
	return reports[0]
}

// The oracle agrees with itself, so the suite sets its buffers up as the ops expect them. Long cases are not computed here (see
// TestEveryCaseIsSetUp), but where kernels are judged.
func TestOraclePasses(t *testing.T) {
	for _, act := range []op.DType{op.F32, op.BF16} {
		t.Run(act.String(), func(t *testing.T) {
			t.Parallel()
			report := run(t, target(oracle.New(act), act), optest.Options{Seed: 1, Short: true})
			seen := map[string]bool{}
			for _, r := range report.Results {
				seen[r.Op] = true
				if r.Status != optest.Pass {
					t.Error(r)
				}
			}
			if got, want := slices.Sorted(maps.Keys(seen)), ops.Names(); !slices.Equal(got, want) {
				t.Errorf("cases for %v, want some for each of %v", got, want)
			}
			t.Logf("%d cases", len(report.Results))
		})
	}
}

// broken is the oracle but for what a test replaces.
type broken struct {
	*oracle.Set
	linear func(s *oracle.Set, q op.Stream, x op.Linear)
	norm   func(s *oracle.Set, q op.Stream, x op.RMSNorm)
	attend func(s *oracle.Set, q op.Stream, x op.PagedAttention)
	sample func(s *oracle.Set, q op.Stream, x op.Sample)
	pack   func(s *oracle.Set, q op.Stream, x op.Pack)
	rotary func(s *oracle.Set, q op.Stream, x op.RotaryCache)
	conv   func(s *oracle.Set, q op.Stream, x op.CausalConv)
	delta  func(s *oracle.Set, q op.Stream, x op.DeltaRule)
}

func (b *broken) Linear(q op.Stream, x op.Linear)   { replace(b.Set, q, x, b.linear, b.Set.Linear) }
func (b *broken) RMSNorm(q op.Stream, x op.RMSNorm) { replace(b.Set, q, x, b.norm, b.Set.RMSNorm) }
func (b *broken) PagedAttention(q op.Stream, x op.PagedAttention) {
	replace(b.Set, q, x, b.attend, b.Set.PagedAttention)
}
func (b *broken) Sample(q op.Stream, x op.Sample) { replace(b.Set, q, x, b.sample, b.Set.Sample) }
func (b *broken) Pack(q op.Stream, x op.Pack)     { replace(b.Set, q, x, b.pack, b.Set.Pack) }
func (b *broken) RotaryCache(q op.Stream, x op.RotaryCache) {
	replace(b.Set, q, x, b.rotary, b.Set.RotaryCache)
}

func (b *broken) CausalConv(q op.Stream, x op.CausalConv) {
	replace(b.Set, q, x, b.conv, b.Set.CausalConv)
}
func (b *broken) DeltaRule(q op.Stream, x op.DeltaRule) {
	replace(b.Set, q, x, b.delta, b.Set.DeltaRule)
}

func replace[T any](s *oracle.Set, q op.Stream, x T, other func(*oracle.Set, op.Stream, T), usual func(op.Stream, T)) {
	if other != nil {
		other(s, q, x)
		return
	}
	usual(q, x)
}

func floats(p op.Ptr, n int32) []float32 {
	return unsafe.Slice((*float32)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

func ints(p op.Ptr, n int32) []int32 {
	return unsafe.Slice((*int32)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

// Sets with one fault each: the suite must find it, in that op, and say what it is.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		op      string
		set     broken
		message string
		all     bool // every case fails, not just some
	}{
		{"one element past the end", "Linear", broken{linear: func(s *oracle.Set, q op.Stream, x op.Linear) {
			s.Linear(q, x)
			end := (x.Rows-1)*x.OutPitch + x.W.Rows
			floats(x.Out, end+1)[end] = 1
		}}, "past the end of Out", true},
		{"one element before the start", "RMSNorm", broken{norm: func(s *oracle.Set, q op.Stream, x op.RMSNorm) {
			s.RMSNorm(q, x)
			floats(x.Out-4, 1)[0] = 1
		}}, "bytes before", true},
		{"gap of a pitch", "Linear", broken{linear: func(s *oracle.Set, q op.Stream, x op.Linear) {
			s.Linear(q, x)
			if x.Rows > 1 {
				floats(x.Out, x.OutPitch)[x.OutPitch-1] = 1
			}
		}}, "the gap between rows of Out", false},
		{"last row skipped", "RMSNorm", broken{norm: func(s *oracle.Set, q op.Stream, x op.RMSNorm) {
			x.Rows--
			s.RMSNorm(q, x)
		}}, "is NaN", false},
		{"a hundredth added to one element", "Linear", broken{linear: func(s *oracle.Set, q op.Stream, x op.Linear) {
			s.Linear(q, x)
			floats(x.Out, 1)[0] += 1e-2
		}}, "Out[0", false},
		{"input changed", "RMSNorm", broken{norm: func(s *oracle.Set, q op.Stream, x op.RMSNorm) {
			s.RMSNorm(q, x)
			floats(x.Scale, 1)[0]++
		}}, "the input Scale was changed", true},
		{"bits depend on the number of rows", "Linear", broken{linear: func(s *oracle.Set, q op.Stream, x op.Linear) {
			s.Linear(q, x)
			if x.Rows > 4 { // another rounding of the last bits, well within any tolerance
				for i, v := range floats(x.Out, x.W.Rows) {
					floats(x.Out, x.W.Rows)[i] = v * (1 + 0x1p-22)
				}
			}
		}}, "as among all rows", false},
		{"bits depend on the place in the batch", "RMSNorm", broken{norm: func(s *oracle.Set, q op.Stream, x op.RMSNorm) {
			s.RMSNorm(q, x)
			floats(x.Out, 1)[0] *= 1 + 0x1p-22
		}}, "as among all rows", false},
		{"bits depend on how a prefill is cut", "PagedAttention", broken{attend: func(s *oracle.Set, q op.Stream, x op.PagedAttention) {
			s.PagedAttention(q, x)
			if x.Rows == x.Seqs {
				for i, v := range floats(x.Out, x.Heads*x.HeadDim) {
					floats(x.Out, x.Heads*x.HeadDim)[i] = v * (1 + 0x1p-22)
				}
			}
		}}, "as in one prefill", false},
		{"padding rows written", "PagedAttention", broken{attend: func(s *oracle.Set, q op.Stream, x op.PagedAttention) {
			s.PagedAttention(q, x)
			if end := ints(x.Starts, x.Seqs+1)[x.Seqs]; end < x.Rows {
				floats(x.Out, x.Rows*x.Heads*x.HeadDim)[end*x.Heads*x.HeadDim] = 0
			}
		}}, "must be left alone", false},
		{"bits depend on how many rows a step has", "DeltaRule", broken{delta: func(s *oracle.Set, q op.Stream, x op.DeltaRule) {
			s.DeltaRule(q, x)
			if x.Rows > x.Seqs {
				floats(x.Out, 1)[0] *= 1 + 0x1p-22
			}
		}}, "as in one call", false},
		{"drafts stay in the state", "DeltaRule", broken{delta: func(s *oracle.Set, q op.Stream, x op.DeltaRule) {
			x.Drafts = 0
			s.DeltaRule(q, x)
		}}, "State[", false},
		{"right drafts are forgotten", "DeltaRule", broken{delta: func(s *oracle.Set, q op.Stream, x op.DeltaRule) {
			x.Accepted = 0
			s.DeltaRule(q, x)
		}}, "want", false},
		{"the slot of a new sequence is read", "DeltaRule", broken{delta: func(s *oracle.Set, q op.Stream, x op.DeltaRule) {
			for i := range ints(x.Lengths, x.Seqs) {
				if x.MaxDrafts == 0 {
					ints(x.Lengths, x.Seqs)[i]++
					defer func() { ints(x.Lengths, x.Seqs)[i]-- }()
				}
			}
			s.DeltaRule(q, x)
		}}, "want", false},
		{"heads paired in the other way", "DeltaRule", broken{delta: func(s *oracle.Set, q op.Stream, x op.DeltaRule) {
			x.Tiled = 1 - x.Tiled
			s.DeltaRule(q, x)
		}}, "want", false},
		{"a ring holds another input", "CausalConv", broken{conv: func(s *oracle.Set, q op.Stream, x op.CausalConv) {
			s.CausalConv(q, x)
			slot := ints(x.Slot, 1)[0]
			if ring := x.Width + x.MaxDrafts; x.Rows > ring && slot >= 0 {
				floats(x.State, (slot+1)*ring*x.Channels)[slot*ring*x.Channels]++
			}
		}}, "State[", false},
		{"one key too many", "PagedAttention", broken{attend: func(s *oracle.Set, q op.Stream, x op.PagedAttention) {
			if x.Window > 0 {
				x.Window++
			}
			s.PagedAttention(q, x)
		}}, "want", false},
		{"another cache slot touched", "RotaryCache", broken{rotary: func(s *oracle.Set, q op.Stream, x op.RotaryCache) {
			s.RotaryCache(q, x)
			slots := ints(x.Slots, x.Rows)
			if x.KVType == op.F32 && slots[0]%x.BlockSize > 0 { // the slot before belongs to no row, most likely
				at := ((slots[0]/x.BlockSize*x.KVHeads)*x.BlockSize + slots[0]%x.BlockSize) * x.HeadDim
				floats(x.V, at)[at-1] += 0.5
			}
		}}, "V[", false},
		{"wrong token drawn", "Sample", broken{sample: func(s *oracle.Set, q op.Stream, x op.Sample) {
			s.Sample(q, x)
			ints(x.Out, 1)[0]++
		}}, "Out[0]", true},
		{"top p read from another buffer", "Sample", broken{sample: func(s *oracle.Set, q op.Stream, x op.Sample) {
			x.TopP = x.MinP // zero, mostly
			s.Sample(q, x)
		}}, "Out[", false},
		{"a bit lost in packing", "Pack", broken{pack: func(s *oracle.Set, q op.Stream, x op.Pack) {
			s.Pack(q, x)
			floats(x.W.Data, 1)[0] = 0
		}}, "Unpack gave", true},
		{"packing writes too much", "Pack", broken{pack: func(s *oracle.Set, q op.Stream, x op.Pack) {
			s.Pack(q, x)
			floats(x.W.Data+op.Ptr(x.Bytes), 1)[0] = 0
		}}, "past the end of W.Data", true},
	}
	for _, c := range cases {
		c.set.Set = oracle.New(op.F32)
		report := run(t, target(&c.set, op.F32), optest.Options{Ops: []string{c.op}, Seed: 1, Short: true})
		if report.Count(optest.Fail) == 0 {
			t.Errorf("%s: all %d cases of %s passed", c.name, len(report.Results), c.op)
			continue
		}
		if c.all && report.Count(optest.Fail) < len(report.Results) {
			t.Errorf("%s: %d of %d cases of %s passed", c.name, report.Count(optest.Pass), len(report.Results), c.op)
		}
		found := false
		for _, r := range report.Results {
			found = found || r.Status == optest.Fail && strings.Contains(r.Message, c.message)
		}
		if !found {
			t.Errorf("%s: no message has %q in it:\n%s", c.name, c.message, report)
		}
	}
}

// half has no kernels for two schemes.
type half struct{ *oracle.Set }

func (h half) PackedBytes(s op.Scheme, rows, cols int32) int64 {
	if s == op.SchemeQ4_1 || s == op.SchemeNVFP4 {
		return 0
	}
	return h.Set.PackedBytes(s, rows, cols)
}

func TestMissingSchemesAreSkipped(t *testing.T) {
	skipped := map[string]bool{}
	for _, match := range []string{"q4_0", "q4_1", "nvfp4"} {
		for _, r := range run(t, target(half{oracle.New(op.F32)}, op.F32), optest.Options{Match: match, Short: true}).Results {
			want := optest.Skip
			if match == "q4_0" {
				want = optest.Pass
			}
			if r.Status != want {
				t.Errorf("%s: want %s", r, want)
			}
			if r.Status == optest.Skip {
				skipped[r.Op] = true
			}
		}
	}
	for _, name := range strings.Fields("Pack Unpack Embedding Linear Logits ExpertUp ExpertDown NormLinear GatedLinear NormRouteUp LinearAdd ExpertDownAdd ExpertDownNorm") {
		if !skipped[name] {
			t.Errorf("no case of %s is skipped", name)
		}
	}
}

func TestUnknownOpsAreErrors(t *testing.T) {
	if _, err := optest.Run(nil, optest.Options{Ops: []string{"Softmax"}}); err == nil || !strings.Contains(err.Error(), "Softmax") {
		t.Errorf("got %v, want an error that names the op", err)
	}
}
