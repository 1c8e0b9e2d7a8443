package main

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// No call asks for more scratch memory than its set says of calls up to larger sizes, and some ask for all of it.
func TestScratchIsBounded(t *testing.T) {
	for _, b := range bundles() {
		for _, options := range [][]string{nil, {"exact"}, b.Features, append([]string{"amx"}, b.Features...)} {
			set := b.Set("", b.Unloaded(), options)
			t.Run(fmt.Sprintf("%s%v", b.Hardware, options), func(t *testing.T) { bounded(t, set) })
		}
	}
}

func bounded(t *testing.T, set bundle.Set) {
	random := rand.New(rand.NewPCG(1, 2))
	asking, met := map[string]bool{}, map[string]bool{}
	methods := reflect.TypeFor[bundle.Set]()
	for i := range methods.NumMethod() {
		if m := methods.Method(i).Type; m.NumIn() == 2 && m.In(1).Kind() == reflect.Struct {
			for range 400 {
				most := reflect.New(m.In(1)).Elem()
				randomSizes(random, most, set)
				for range 4 {
					call := reflect.New(m.In(1)).Elem()
					call.Set(most)
					lessOf(random, call)
					var q calls.Stream
					ops.Call(set, &q, call.Interface())
					bound := set.Scratch(most.Interface())
					if q.MostScratch > bound {
						t.Fatalf("%T %+v asks for %d bytes, and the most of %+v is %d", call.Interface(), call, q.MostScratch, most, bound)
					}
					asking[m.In(1).Name()] = asking[m.In(1).Name()] || q.MostScratch > 0
					met[m.In(1).Name()] = met[m.In(1).Name()] || q.MostScratch > 0 && q.MostScratch == bound
				}
			}
		}
	}
	if len(asking) == 0 || !asking["PagedAttention"] && !asking["Linear"] && !asking["Sample"] {
		t.Error("no call asks for scratch memory")
	}
	for name := range asking {
		if asking[name] && !met[name] {
			t.Errorf("no call of %s asks for as much as the set says", name)
		}
	}
}

// randomSizes fills an operation's struct with sizes that a model may have.
func randomSizes(random *rand.Rand, v reflect.Value, set bundle.Set) {
	one := func(of ...int64) int64 { return of[random.IntN(len(of))] }
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case f.Kind() == reflect.Struct:
			w := op.Weight{Scheme: op.Scheme(1 + random.IntN(16)), Rows: int32(one(8, 128, 192, 1536, 4096, 6144)), Cols: int32(256 * one(1, 2, 4, 8, 12, 17, 32)),
				Count: int32(one(1, 8, 128, 256, 512, 2000)), Rounding: op.Rounding(random.IntN(3))}
			for w.Scheme.String() == "unknown" || set.PackedBytes(w.Scheme, w.Rows, w.Cols) == 0 {
				w.Scheme = op.Scheme(1 + random.IntN(16))
			}
			f.Set(reflect.ValueOf(w))
		case name == "_":
		case f.Type() == reflect.TypeFor[op.Ptr]():
			f.SetUint(uint64(random.IntN(2) * 4096))
		case f.Type() == reflect.TypeFor[op.DType]():
			f.SetInt(one(int64(op.F32), int64(op.BF16)))
		case v.Type().Field(i).Tag.Get("atlas") == "step":
			f.SetInt(1 << random.IntN(13))
			f.SetInt(f.Int() + random.Int64N(f.Int()))
		case name == "HeadDim":
			f.SetInt(one(32, 64, 80, 128, 256))
		case name == "TopK" || name == "BlockSize":
			f.SetInt(one(1, 2, 8, 16))
		case f.CanInt():
			f.SetInt(one(1, 2, 4, 8, 32, 64, 128, 256, 1024, 32000, 151936, 200000))
		}
	}
}

// lessOf makes sizes of a step less, or leaves them.
func lessOf(random *rand.Rand, v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); v.Type().Field(i).Tag.Get("atlas") == "step" && random.IntN(2) == 0 {
			f.SetInt(1 + random.Int64N(min(f.Int(), 1<<random.IntN(14))))
		}
	}
}

// No step asks for more scratch memory than what was measured: a stream that has less ends the step, and with it the engine.
func TestStepsFitTheirScratchMemory(t *testing.T) {
	mixed, err := dummy.Parse("q4_k_m")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles() {
		stored := []dummy.Options{mixed, {Scheme: op.SchemeF8Block}}
		for _, exact := range []bool{false, true} {
			target, err := instance.Hardware{Bundles: bundles(), Name: b.Hardware, Exact: exact}.Ask()
			if err != nil {
				t.Fatal(err)
			}
			for _, heads := range [][3]int{{32, 8, 128}, {32, 4, 128}, {24, 3, 64}, {9, 3, 64}, {12, 2, 256}} {
				for i, sequences := range []int{1, 7, 64} {
					options := stored[i%2]
					t.Run(fmt.Sprintf("%s/exact=%v/%v/%d", b.Hardware, exact, heads, sequences), func(t *testing.T) { fits(t, target, options, heads, sequences) })
				}
			}
		}
	}
}

func fits(t *testing.T, target *instance.Target, options dummy.Options, heads [3]int, sequences int) {
	data := fmt.Appendf(nil, `{"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 1, "num_attention_heads": %d, "num_key_value_heads": %d,
		"head_dim": %d, "intermediate_size": 12288, "vocab_size": 1000, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6}`, heads[0], heads[1], heads[2])
	dimensions, err := qwen3.ReadConfig("config.json", data, "qwen3")
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := madeUp(t, target, string(data), options)
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
		in := &model.Inputs{Rows: seqs, Seqs: seqs, Outputs: seqs, MaxBlocks: upTo(context / p.Sizes.BlockSize), BlockSize: int32(p.Sizes.BlockSize), KVType: op.BF16, Memory: [][]op.Ptr{{0, 0}}}
		in.Blocks = in.Seqs * in.MaxBlocks
		switch random.IntN(3) {
		case 0:
			in.Rows += upTo(int(seqs) + 2)
		case 1:
			in.Rows = max(in.Rows, upTo(1+random.IntN(rows)))
		}
		var stream calls.Stream
		if m.Forward(&stream, in); stream.MostScratch > p.Scratch {
			t.Fatalf("%d rows of %d sequences, %d blocks: %d bytes are asked for, %d were measured", in.Rows, in.Seqs, in.MaxBlocks, stream.MostScratch, p.Scratch)
		}
	}
}
