package instance

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// sequence is one sequence of a model on host memory, whose steps may end in drafts.
type sequence struct {
	pin    *runtime.Pinner
	model  model.Model
	memory [][]op.Ptr
	table  []int32 // its blocks
	block  int     // tokens of a block
}

func newSequence(pin *runtime.Pinner, m model.Model, tokens int) *sequence {
	s := &sequence{pin: pin, model: m, block: 4}
	for i := range int32((tokens + s.block - 1) / s.block) {
		s.table = append(s.table, i)
	}
	for _, kept := range m.Layout().Memory {
		var arrays []op.Ptr
		for _, a := range kept.Arrays {
			n := a.Elements
			if kept.Kind == model.PerToken {
				n *= int64(len(s.table) * s.block)
			}
			arrays = append(arrays, oracle.Address(pin, make([]float32, n)))
		}
		s.memory = append(s.memory, arrays)
	}
	return s
}

// step computes tokens from a position on, the last of which are drafts, behind a step of which so many drafts were right. It returns the
// logits of all.
func (s *sequence) step(position int, tokens []int32, drafts, accepted int32) []float32 {
	rows := int32(len(tokens))
	var positions, slots, index []int32
	for i := range rows {
		at := int32(position) + i
		positions, slots, index = append(positions, at), append(slots, at), append(index, i)
	}
	vocab := s.model.Layout().Vocab
	logits := make([]float32, rows*vocab)
	words := func(values ...int32) op.Ptr { return oracle.Address(s.pin, values) }
	s.model.Forward(nil, &model.Inputs{
		Tokens: words(tokens...), Positions: words(positions...), Slots: words(slots...), Starts: words(0, rows), Lengths: words(int32(position) + rows),
		Tables: words(s.table...), States: words(0), Drafts: words(drafts), Accepted: words(accepted), Index: words(index...), Logits: oracle.Address(s.pin, logits),
		Memory: s.memory, Rows: rows, Seqs: 1, Outputs: rows, MaxBlocks: int32(len(s.table)), Blocks: int32(len(s.table)), BlockSize: int32(s.block), StateSlots: 1, KVType: op.F32,
	})
	return logits
}

// Drafts that turn out wrong leave no trace in what a sequence keeps, however many of a step are right.
func TestRejectedDraftsLeaveNoTrace(t *testing.T) {
	for _, name := range []string{"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3"} {
		t.Run(name, func(t *testing.T) {
			want := golden.Read(t, name)
			const most = 3
			d := host.New(0)
			defer runtime.KeepAlive(d) // and with it the weights
			m := loaded(t, want.Checkpoint, d, oracle.New(op.F32), model.Limits{Rows: 16, Drafts: most, Activations: op.F32})
			var pin runtime.Pinner
			defer pin.Unpin()
			s := newSequence(&pin, m, len(want.Tokens)+most)
			vocab := m.Layout().Vocab
			check := func(position int, logits []float32) {
				t.Helper()
				if d := golden.Worst(logits, want.Logits[position*int(vocab):][:len(logits)]); !(d <= 2e-3) {
					t.Errorf("from position %d on: max |Δlogit| is %v, want at most 2e-3", position, d)
				}
			}
			const prompt = 9
			check(0, s.step(0, want.Tokens[:prompt], 0, 0))
			r := rand.New(rand.NewPCG(1, 2))
			accepted := int32(0)
			for position := prompt; position < len(want.Tokens); {
				drafts := r.Int32N(most + 1)
				right := min(r.Int32N(drafts+1), int32(len(want.Tokens)-position-1))
				rows := append([]int32(nil), want.Tokens[position:position+1+int(right)]...)
				for range drafts - right {
					rows = append(rows, r.Int32N(vocab))
				}
				logits := s.step(position, rows, drafts, accepted)
				check(position, logits[:(1+right)*vocab])
				position, accepted = position+1+int(right), right
			}
		})
	}
}
