package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// quantised are checkpoints whose linears are stored in a scheme.
var quantised = []struct {
	name   string
	scheme op.Scheme
}{
	{"llama-fp8-block", op.SchemeF8Block},
	{"qwen3-nvfp4-ct", op.SchemeNVFP4},
	{"qwen3-nvfp4-modelopt", op.SchemeNVFP4},
	{"qwen3_moe-nvfp4-modelopt", op.SchemeNVFP4},
}

// Quantised checkpoints run, or are refused by name, on the reference and on all hardware. transformers dequantised the
// weights and kept activations in f32, so that only roundings of activations are between the two.
func TestQuantisedCheckpointsAgreeWithTransformers(t *testing.T) {
	for _, c := range quantised {
		t.Run(c.name, func(t *testing.T) {
			folder := testdata.Shared(t, "golden/"+c.name)
			want := readGolden(t, folder+"/golden.safetensors")
			tied := expertTies(t, folder, want.tokens)
			check := func(t *testing.T, target *instance.Target) {
				if target.Set.PackedBytes(c.scheme, 128, 128) == 0 {
					refused(t, target, folder, c.scheme)
					return
				}
				agrees(t, target, folder, want, tied)
			}
			for _, act := range []op.DType{op.F32, op.BF16} {
				target := onOracle(act)
				t.Run(target.Bundle.Hardware, func(t *testing.T) { check(t, target) })
			}
			eachHardware(t, false, check)
		})
	}
}

// refused checks that preparing a checkpoint fails, and why.
func refused(t *testing.T, target *instance.Target, folder string, scheme op.Scheme) {
	t.Helper()
	c, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = instance.Prepare(target, c, instance.Sizes{KVType: op.BF16})
	if err == nil || !strings.Contains(err.Error(), scheme.String()) || !strings.Contains(err.Error(), target.Bundle.Hardware) {
		t.Errorf("got %v, want an error that names %s and %s", err, scheme, target.Bundle.Hardware)
	}
}

// agrees compares logits. Exact targets must also write what transformers writes; others may round at every position where
// no experts tie.
func agrees(t *testing.T, target *instance.Target, folder string, want golden, tied []bool) {
	t.Helper()
	exact := target.Bundle.Hardware == "oracle-f32"
	m := place(t, target, folder, exact)
	d := direct(t, m)
	logits, err := d.Logits(want.tokens, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	vocab, most, compared := int(m.Layout.Vocab), 0.0, 0
	for i := range want.tokens {
		if tied[i] && !exact {
			continue
		}
		row := relative(logits[i*vocab:(i+1)*vocab], want.logits[i*vocab:(i+1)*vocab])
		most = max(most, row)
		compared++
	}
	limit := closeness(target)
	t.Logf("largest relative L2 difference %.1e over %d of %d positions, max |Δlogit| %.1e", most, compared, len(want.tokens), worst(logits, want.logits))
	switch {
	case !exact && !(most <= limit):
		t.Errorf("relative L2 difference is up to %.2e, want at most %.0e", most, limit)
	case exact && !(worst(logits, want.logits) <= 2e-3):
		t.Errorf("max |Δlogit| is %v, want at most 2e-3", worst(logits, want.logits))
	case exact:
		greedy, err := d.Greedy(want.tokens, len(want.greedy))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(greedy, want.greedy) {
			t.Errorf("greedy continuation\n got %v\nwant %v", greedy, want.greedy)
		}
	}
}
