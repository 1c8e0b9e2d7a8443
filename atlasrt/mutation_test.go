package main

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// mutant is the reference in bf16 with a fault in every fourth row.
type mutant struct {
	patient
	experts bool    // the worst expert takes the place of the best
	factor  float64 // of what an operation gives
}

// spoil multiplies every fourth of some rows.
func (m mutant) spoil(q op.Stream, out op.Ptr, rows, cols int32) {
	run(q, out, func(_ op.Stream, out op.Ptr) {
		row := make([]float64, cols)
		for r := int32(3); r < rows && m.factor != 1; r += 4 {
			data := unsafe.Slice((*byte)(pointer(out+op.Ptr(2*r*cols))), 2*cols)
			oracle.Decode(row, op.BF16, data)
			for i := range row {
				row[i] *= m.factor
			}
			oracle.Encode(data, op.BF16, row)
		}
	})
}

func (m mutant) GatedNorm(q op.Stream, x op.GatedNorm) {
	m.patient.GatedNorm(q, x)
	m.spoil(q, x.Out, x.Rows, x.Heads*x.HeadDim)
}

func (m mutant) PagedAttention(q op.Stream, x op.PagedAttention) {
	m.patient.PagedAttention(q, x)
	m.spoil(q, x.Out, x.Rows, x.Heads*x.HeadDim)
}

func (m mutant) Route(q op.Stream, x op.Route) {
	m.patient.Route(q, x)
	run(q, x, func(q op.Stream, x op.Route) {
		ids, own := words(x.IDs, int(x.Rows*x.TopK)), make([]float64, x.Experts)
		for r := int32(3); r < x.Rows && m.experts; r += 4 {
			oracle.Decode(own, op.BF16, unsafe.Slice((*byte)(pointer(x.Logits+op.Ptr(2*r*x.Experts))), 2*x.Experts))
			worst := int32(0)
			for e, z := range own[:x.Experts-x.Shared] {
				if z < own[worst] {
					worst = int32(e)
				}
			}
			ids[r*x.TopK] = worst
		}
		oracle.Group(words(x.Order, len(ids)), words(x.Starts, int(x.Experts+1)), ids)
	})
}

// The faults are in operations of their own.

func (m mutant) NormRoute(op.Stream, op.NormRoute) bool     { return false }
func (m mutant) NormRouteUp(op.Stream, op.NormRouteUp) bool { return false }
func (m mutant) DeltaNet(op.Stream, op.DeltaNet) bool       { return false }

// A fault at one position in four is noticed, also where losses are compared by rank; and the reference itself is not found wrong.
func TestFaultsAreNoticed(t *testing.T) {
	for _, name := range []string{"qwen3_moe", "qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_next-nvfp4-modelopt", "qwen3_5_moe-mtp"} {
		t.Run(name, func(t *testing.T) {
			want, of := golden.Read(t, name), subject(promptLogits)
			if slices.Contains(heads(), name) {
				of = headScores
			}
			for _, c := range []struct {
				name string
				with mutant
				ok   bool
			}{
				{"no fault", mutant{factor: 1}, true},
				{"an eighth too much", mutant{factor: 1.125}, false},
				{"another sign", mutant{factor: -1}, false},
				{"another expert", mutant{factor: 1, experts: true}, name == "qwen3_5"}, // which has none
			} {
				target := onOracle(op.BF16)
				c.with.patient = target.Set.(patient)
				target.Set = c.with
				x := of.try(t, target, want.Checkpoint, want.Tokens, 128)
				err := x.judge(inBF16)
				t.Logf("%s: %v", c.name, x)
				if (err == nil) != c.ok {
					t.Errorf("%s: got %v", c.name, err)
				}
			}
		})
	}
}
