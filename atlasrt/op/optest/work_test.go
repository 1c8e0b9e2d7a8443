package optest

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// The bytes of calls that are easy to count by hand: two for each element, and of caches and experts what is touched.
func TestWork(t *testing.T) {
	const given op.Ptr = 1 << 40
	matrix := func(count, rows, cols int32) op.Weight {
		return op.Weight{Scheme: op.SchemeBF16, Rows: rows, Cols: cols, Count: count, Stride: 2 * int64(rows) * int64(cols)}
	}
	attention := op.PagedAttention{Rows: 2, QPitch: 6144, Seqs: 2, MaxBlocks: 64, Heads: 32, KVHeads: 8, HeadDim: 128, Blocks: 128, BlockSize: 16, KVType: op.BF16}
	window, prompt := attention, attention
	window.Window = 100
	prompt.Rows, prompt.Seqs, prompt.Blocks = 1024, 1, 64
	rule := op.DeltaRule{Rows: 2, Seqs: 2, Slots: 9, KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128, GatesPitch: 64}
	drafting := rule
	drafting.MaxDrafts, drafting.Journal, drafting.Drafts, drafting.Accepted = 3, given, given, given // none are assumed
	cases := []struct {
		args         any
		bytes, flops int64
	}{
		{op.Linear{W: matrix(1, 6144, 4096), Rows: 1, OutPitch: 6144}, 2 * (6144*4096 + 4096 + 6144), 2 * 6144 * 4096},
		{op.Linear{W: matrix(1, 4096, 12288), Rows: 16, OutPitch: 4096, Bias: given}, 2*(4096*12288+16*(12288+4096)) + 4*4096, 2 * 16 * 4096 * 12288},
		{op.LinearAdd{W: matrix(1, 64, 32), Rows: 2, OutPitch: 64}, 2 * (64*32 + 2*(32+2*64)), 2 * 2 * 64 * 32},
		{op.NormLinear{W: matrix(1, 64, 32), Rows: 2, OutPitch: 64, Residual: given, Sum: given}, 2*(64*32+2*(3*32+64)) + 4*32, 2 * 2 * 64 * 32},
		{op.RMSNorm{Rows: 1, Cols: 4096}, 2*2*4096 + 4*4096, 0},
		{op.NormPair{Rows: 1, OtherRows: 1, Cols: 4096}, 2*4*4096 + 2*4*4096, 0},
		{op.RMSNorm{Rows: 1, Cols: 4096, Residual: given}, 2*4*4096 + 4*4096, 0},
		{op.Embedding{W: matrix(1, 151936, 4096), Rows: 2}, 2*(2*4096) + 2*2*4096 + 4*2, 0},
		{op.Logits{W: matrix(1, 151936, 4096), Rows: 1, InRows: 512}, 2*(151936*4096+512*4096) + 4*151936 + 4, 2 * 151936 * 4096},
		{attention, 2*2*2*1024*8*128 + 2*2*2*32*128 + 4*(3+2+2*64), 4 * 2 * 1024 * 32 * 128},
		{window, 2*2*2*100*8*128 + 2*2*2*32*128 + 4*(3+2+2*64), 4 * 2 * 100 * 32 * 128},
		{prompt, 2*2*1024*8*128 + 1024*2*2*32*128 + 4*(2+1+64), 4 * 1024 * 1025 / 2 * 32 * 128},
		{op.ExpertUp{W: matrix(128, 1536, 2048), Rows: 1, TopK: 8}, 2*(8*1536*2048) + 2*(8*768+2048) + 4*(2*8+129), 2 * 8 * 1536 * 2048},
		{op.ExpertDown{W: matrix(128, 2048, 768), Rows: 64, TopK: 8}, 2*(128*768*2048) + 2*64*(2048+8*768) + 4*(3*64*8+129), 2 * 64 * 8 * 2048 * 768},
		{op.CausalConv{Rows: 2, Seqs: 2, Slots: 9, Channels: 8192, Width: 4, InPitch: 8192}, 2*2*8192*(1+3+1+1) + 4*4*8192 + 4*(3+2+2), 2 * 2 * 4 * 8192},
		{op.CausalConv{Rows: 1024, Seqs: 1, Slots: 9, Channels: 64, Width: 4, MaxDrafts: 1, InPitch: 64}, 2*64*(2*1024+5) + 4*4*64 + 4*(2+1+1), 2 * 1024 * 4 * 64},
		{rule, 2*2*2*1024*1024 + 2*2*(2*2048+2*4096+64) + 4*2*32 + 4*(3+2+2), 6 * 2 * 32 * 128 * 128},
		{drafting, 2*2*2*1024*1024 + 2*2*(2*2048+2*4096+64) + 4*2*32 + 4*(3+4*2), 6 * 2 * 32 * 128 * 128},
		{
			op.DeltaNet{Rows: 2, Seqs: 2, Slots: 9, KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128, Width: 4},
			2*2*2*1024*1024 + 2*2*(8192*(1+3+1)+2*4096+64) + 4*4*8192 + 4*(2*32+128) + 4*(3+2+2), 2 * (2*4*8192 + 6*32*128*128),
		},
		{op.GatedNorm{Rows: 2, Heads: 32, HeadDim: 128, ZPitch: 5000}, 2*2*3*4096 + 4*128, 0},
	}
	for _, c := range cases {
		bytes, flops, err := Work(oracle.New(op.BF16), op.BF16, c.args, 1024)
		if err != nil || bytes != c.bytes || flops != c.flops {
			t.Errorf("%T %+v: got %d bytes, %d products, %v, want %d, %d", c.args, c.args, bytes, flops, err, c.bytes, c.flops)
		}
	}
}
