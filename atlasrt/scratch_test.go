package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// No step asks for more scratch memory than what was measured: a stream that has less ends the step, and with it the engine.
func TestStepsFitTheirScratchMemory(t *testing.T) {
	for _, b := range bundles() {
		kernels, scheme := numbered(b), op.SchemeF8Block
		if b.Device == "cpu" {
			scheme = op.SchemeQ8_0
		}
		for _, exact := range []bool{false, true} {
			target := &instance.Target{Device: host.New(1 << 40), Set: b.New(kernels, func(option string) bool { return exact && option == "exact" }), Bundle: b}
			for _, heads := range [][3]int{{32, 8, 128}, {32, 4, 128}, {24, 3, 64}, {9, 3, 64}, {12, 2, 256}} {
				for _, sequences := range []int{1, 7, 64} {
					t.Run(fmt.Sprintf("%s/exact=%v/%v/%d", b.Hardware, exact, heads, sequences), func(t *testing.T) { fits(t, target, scheme, heads, sequences) })
				}
			}
		}
	}
}

func fits(t *testing.T, target *instance.Target, scheme op.Scheme, heads [3]int, sequences int) {
	data := fmt.Appendf(nil, `{"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 1, "num_attention_heads": %d, "num_key_value_heads": %d,
		"head_dim": %d, "intermediate_size": 12288, "vocab_size": 1000, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6}`, heads[0], heads[1], heads[2])
	dimensions, err := qwen3.ReadConfig("config.json", data)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := madeUp(t, target, string(data), dummy.Options{Scheme: scheme})
	const rows, context = 4096, 32768
	p, err := instance.Prepare(target, checkpoint, instance.Sizes{MaxContext: context, MaxSequences: sequences, MaxBatchTokens: rows, KVType: op.BF16})
	if err != nil {
		t.Fatal(err)
	}
	m := qwen3.New(target.Set, load.NewCounter(target.Set, load.Stored(checkpoint, target.Set)), dimensions, model.Limits{Rows: rows, Activations: target.Bundle.Activations})
	random := rand.New(rand.NewPCG(1, 2))
	upTo := func(most int) int32 { return 1 + random.Int32N(int32(most)) }
	for range 3000 {
		seqs := upTo(sequences)
		in := &model.Inputs{Rows: seqs, Seqs: seqs, Outputs: seqs, MaxBlocks: upTo(context / p.Sizes.BlockSize), BlockSize: int32(p.Sizes.BlockSize), KVType: op.BF16, Cache: make([]model.Cache, 1)}
		in.Blocks = in.Seqs * in.MaxBlocks
		switch random.IntN(3) {
		case 0:
			in.Rows += upTo(int(seqs) + 2)
		case 1:
			in.Rows = max(in.Rows, upTo(1+random.IntN(rows)))
		}
		var stream load.Measure
		if m.Forward(&stream, in); stream.Most > p.Scratch {
			t.Fatalf("%d rows of %d sequences, %d blocks: %d bytes are asked for, %d were measured", in.Rows, in.Seqs, in.MaxBlocks, stream.Most, p.Scratch)
		}
	}
}
