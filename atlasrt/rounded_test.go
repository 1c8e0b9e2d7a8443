package main

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// product is the sizes of a call that multiplies by a weight.
type product struct {
	op                string
	outputs, cols     int32
	count, rows, topK int32
}

// roundWatch notes which calls launch kernels that round activations, and by which rule.
type roundWatch struct {
	bundle.Set
	kernels map[op.Kernel]string
	rules   map[product]string
}

// launchWatch hands a call's launches on.
type launchWatch struct {
	op.Stream
	launched func(op.Kernel)
}

func (s launchWatch) Launch(k op.Kernel, g op.Grid) {
	s.launched(k)
	s.Stream.Launch(k, g)
}

func (w roundWatch) note(q op.Stream, p product) op.Stream {
	return launchWatch{q, func(k op.Kernel) {
		if rule := w.kernels[k]; rule != "" {
			w.rules[p] = rule
		}
	}}
}

func linear(x op.Linear) product { return product{"Linear", x.W.Rows, x.W.Cols, 1, x.Rows, 1} }
func up(x op.ExpertUp) product {
	return product{"ExpertUp", x.W.Rows, x.W.Cols, x.W.Count, x.Rows, x.TopK}
}
func down(x op.ExpertDown) product {
	return product{"ExpertDown", x.W.Rows, x.W.Cols, x.W.Count, x.Rows, x.TopK}
}

func (w roundWatch) Linear(q op.Stream, x op.Linear)         { w.Set.Linear(w.note(q, linear(x)), x) }
func (w roundWatch) ExpertUp(q op.Stream, x op.ExpertUp)     { w.Set.ExpertUp(w.note(q, up(x)), x) }
func (w roundWatch) ExpertDown(q op.Stream, x op.ExpertDown) { w.Set.ExpertDown(w.note(q, down(x)), x) }

// What a fused operation rounds, the plain one that is part of it must.

func (w roundWatch) NormLinear(q op.Stream, x op.NormLinear) bool {
	return w.Set.NormLinear(w.note(q, linear(op.Linear{W: x.W, Rows: x.Rows})), x)
}

func (w roundWatch) GatedLinear(q op.Stream, x op.GatedLinear) bool {
	return w.Set.GatedLinear(w.note(q, linear(op.Linear{W: x.W, Rows: x.Rows})), x)
}

func (w roundWatch) NormRouteUp(q op.Stream, x op.NormRouteUp) bool {
	return w.Set.NormRouteUp(w.note(q, up(op.ExpertUp{W: x.W, Rows: x.Rows, TopK: x.TopK})), x)
}

func (w roundWatch) LinearAdd(q op.Stream, x op.LinearAdd) bool {
	return w.Set.LinearAdd(w.note(q, linear(op.Linear{W: x.W, Rows: x.Rows})), x)
}

func (w roundWatch) ExpertDownAdd(q op.Stream, x op.ExpertDownAdd) bool {
	return w.Set.ExpertDownAdd(w.note(q, down(op.ExpertDown{W: x.W, Rows: x.Rows, TopK: x.TopK})), x)
}

func (w roundWatch) ExpertDownNorm(q op.Stream, x op.ExpertDownNorm) bool {
	return w.Set.ExpertDownNorm(w.note(q, down(op.ExpertDown{W: x.W, Rows: x.Rows, TopK: x.TopK})), x)
}

// roundedCalls tells which calls of a prompt in steps of so many rows have their activations rounded on a target.
func roundedCalls(t *testing.T, target *instance.Target, c weights.Checkpoint, tokens []int32, rows int) map[product]string {
	t.Helper()
	w := roundWatch{target.Set, map[op.Kernel]string{}, map[product]string{}}
	for i, k := range target.Bundle.Kernels {
		if k.Rounds != "" {
			w.kernels[target.Kernels[i]] = k.Rounds
		}
	}
	if len(w.kernels) == 0 {
		return nil
	}
	of, sizes := *target, smallSizes()
	of.Set, sizes.MaxBatchTokens = w, rows
	if _, err := direct(t, placeSized(t, &of, c, sizes)).Logits(tokens, 0, true); err != nil {
		t.Fatal(err)
	}
	return w.rules
}

// rounder computes in plain Go, with the activations of some calls rounded.
type rounder struct {
	patient
	rules map[product]string
	sets  map[string]patient // by rule
}

func (r rounder) set(p product) patient {
	if set, ok := r.sets[r.rules[p]]; ok {
		return set
	}
	return r.patient
}

func (r rounder) Linear(q op.Stream, x op.Linear)         { r.set(linear(x)).Linear(q, x) }
func (r rounder) ExpertUp(q op.Stream, x op.ExpertUp)     { r.set(up(x)).ExpertUp(q, x) }
func (r rounder) ExpertDown(q op.Stream, x op.ExpertDown) { r.set(down(x)).ExpertDown(q, x) }

// Fused operations are not served: their parts are what may be rounded.

func (r rounder) NormLinear(op.Stream, op.NormLinear) bool         { return false }
func (r rounder) GatedLinear(op.Stream, op.GatedLinear) bool       { return false }
func (r rounder) NormRoute(op.Stream, op.NormRoute) bool           { return false }
func (r rounder) NormRouteUp(op.Stream, op.NormRouteUp) bool       { return false }
func (r rounder) LinearAdd(op.Stream, op.LinearAdd) bool           { return false }
func (r rounder) ExpertDownAdd(op.Stream, op.ExpertDownAdd) bool   { return false }
func (r rounder) ExpertDownNorm(op.Stream, op.ExpertDownNorm) bool { return false }

// onRoundingOracle is onOracle where the activations of some calls are rounded.
func onRoundingOracle(t *testing.T, act op.DType, rules map[product]string) *instance.Target {
	t.Helper()
	target, set := onOracle(act), oracle.New(act)
	r := rounder{patient{set}, rules, map[string]patient{}}
	for _, rule := range rules {
		rounding, err := set.Rounding(rule)
		if err != nil {
			t.Fatal(err)
		}
		r.sets[rule] = patient{rounding}
	}
	target.Set = r
	return target
}

// coarse rounds activations as rounder does, but with one scale for a whole row.
type coarse struct {
	rounder
	act op.DType
}

func (c coarse) Linear(q op.Stream, x op.Linear) {
	if c.rules[linear(x)] == "" {
		c.patient.Linear(q, x)
		return
	}
	run(q, x, func(q op.Stream, x op.Linear) {
		all := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&x.In))), int64(x.Rows)*int64(x.W.Cols)*c.act.Bytes())
		in, kept, row := all, slices.Clone(all), make([]float64, x.W.Cols)
		for pitch := len(in) / int(x.Rows); len(in) > 0; in = in[pitch:] {
			oracle.Decode(row, c.act, in[:pitch])
			most := 0.0
			for _, v := range row {
				most = max(most, math.Abs(v))
			}
			for i := range row { // e4m3, for numbers in its range
				step := math.Ldexp(1, max(math.Ilogb(row[i]*448/most), -6)-3) * most / 448
				row[i] = step * math.RoundToEven(row[i]/step)
			}
			oracle.Encode(in[:pitch], c.act, row)
		}
		c.patient.Linear(q, x)
		copy(all, kept)
	})
}

// roundedModel has more than one group of 128 columns in each matrix, and so few layers that a rounding which goes the other way
// where bf16 was off by one does not hide how roundings are done.
const roundedModel = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 512,
	"intermediate_size": 1024, "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64,
	"vocab_size": 512, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true}`

// What a target does to activations where a checkpoint of FP8 blocks asks for it is what the plain reference does, down to the
// columns that share a scale; and where activations are kept, it does nothing.
func TestRoundedActivationsFollowTheRule(t *testing.T) {
	prompt := make([]int32, 80)
	for i := range prompt {
		prompt[i] = int32(i*i*31+7*i+1) % 512
	}
	eachHardwareThat(t, (*bundle.Bundle).Rounds, false, func(t *testing.T, target *instance.Target) {
		made := func() weights.Checkpoint {
			return madeUp(t, target, roundedModel, dummy.Options{Scheme: op.SchemeF8Block})
		}
		logits := func(target *instance.Target, keep bool) []float32 {
			sizes := smallSizes()
			sizes.KeepActivations = keep
			all, err := direct(t, placeSized(t, target, made(), sizes)).Logits(prompt, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		rules := roundedCalls(t, target, made(), prompt, 128)
		if len(rules) == 0 {
			t.Fatal("no call had its activations rounded")
		}
		reference := onRoundingOracle(t, target.Bundle.Activations, rules)
		want, kept := logits(reference, false), logits(onOracle(target.Bundle.Activations), false)
		wrong := *reference
		wrong.Set = coarse{reference.Set.(rounder), target.Bundle.Activations}
		right, rough, none := relative(logits(target, false), want), relative(logits(&wrong, false), want), relative(logits(target, true), kept)
		t.Logf("%d products rounded; relative L2 difference %.1e, with one scale a row %.1e, without any %.1e; where kept %.1e",
			len(rules), right, rough, relative(kept, want), none)
		const limit = 5e-2
		if !(right <= limit) {
			t.Errorf("relative L2 difference from the reference that rounds likewise is %.1e, want at most %.0e", right, limit)
		}
		if !(none <= limit/4) {
			t.Errorf("relative L2 difference with activations kept is %.1e, want at most %.1e", none, limit/4)
		}
		if !(rough >= 1.5*limit) {
			t.Errorf("one scale for each row makes a difference of %.1e: this test would not notice, want at least %.0e", rough, 1.5*limit)
		}
	})
}

// middle is the root of the mean square.
func middle(losses []float64) float64 {
	sum := 0.0
	for _, x := range losses {
		sum += x * x
	}
	return math.Sqrt(sum / float64(len(losses)))
}
