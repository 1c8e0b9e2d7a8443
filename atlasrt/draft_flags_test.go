package main

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

func TestDraftFlags(t *testing.T) {
	cases := []struct {
		args   []string
		drafts int
		fixed  bool
		err    string
	}{
		{nil, 0, false, ""},
		{[]string{"--speculative"}, 3, false, ""},
		{[]string{"--speculative", "--num-drafts", "2"}, 2, true, ""},
		{[]string{"--speculative", "--mtp-vocab", "1000", "--mtp-quantization", "fp8"}, 3, false, ""},
		{[]string{"--num-drafts", "1"}, 0, true, "add --speculative"},
		{[]string{"--mtp-vocab", "1000"}, 0, false, "add --speculative"},
		{[]string{"--mtp-quantization", "nvfp4"}, 0, false, "add --speculative"},
	}
	for _, test := range cases {
		for _, command := range []string{"serve", "run", "bench", "plan"} {
			c, _, err := parseLine(t, append([]string{command}, test.args...)...)
			if err != nil {
				t.Errorf("%s %v: %v", command, test.args, err)
				continue
			}
			flags := map[string]draftFlags{"serve": c.Serve.draftFlags, "run": c.Run.draftFlags, "bench": c.Bench.draftFlags, "plan": c.Plan.draftFlags}[command]
			drafts, err := flags.drafting()
			if o := flags.set(engine.Options{}); drafts.most != test.drafts || o.FixedDrafts != test.fixed {
				t.Errorf("%s %v: got %d drafts, fixed %t; want %d, %t", command, test.args, drafts.most, o.FixedDrafts, test.drafts, test.fixed)
			}
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s %v: got %v, want an error with %q", command, test.args, err, test.err)
			}
		}
	}
	for _, args := range [][]string{{"serve", "--num-drafts", "4"}, {"eval", "--speculative"}} {
		if _, _, err := parseLine(t, args...); err == nil {
			t.Errorf("%v: got no error", args)
		}
	}
}

func TestForcedAcceptance(t *testing.T) {
	cases := []struct {
		args []string
		err  string
	}{
		{[]string{"--speculative", "--force-acceptance", "0.8"}, ""},
		{nil, ""},
		{[]string{"--speculative", "--force-acceptance", "1.2"}, "--force-acceptance 1.2 is no probability"},
		{[]string{"--speculative", "--force-acceptance=-1"}, "is no probability"},
		{[]string{"--speculative", "--force-acceptance", "NaN"}, "is no probability"},
		{[]string{"--force-acceptance", "0.8"}, "add --speculative"},
		{[]string{"--speculative", "--profile"}, "add --num-drafts"},
		{[]string{"--speculative", "--profile", "--num-drafts", "2"}, ""},
	}
	for _, test := range cases {
		c, _, err := parseLine(t, append([]string{"bench"}, test.args...)...)
		if err != nil {
			t.Errorf("%v: %v", test.args, err)
			continue
		}
		if err := c.Bench.check(); (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%v: got %v, want an error with %q", test.args, err, test.err)
		}
		if o := c.Bench.options(); test.err == "" && o.ForceDrafts != c.Bench.Acceptance {
			t.Errorf("%v: the engine is told %g", test.args, o.ForceDrafts)
		}
	}
}

// A model without a drafting head is refused by name before anything is loaded.
func TestModelsWithoutADraftingHead(t *testing.T) {
	stored, err := dummy.Parse("bf16")
	if err != nil {
		t.Fatal(err)
	}
	target := onOracle(op.F32)
	sizes := smallSizes()
	sizes.Drafts = 2
	if _, err := instance.Prepare(target, madeUp(t, target, tinyLlama, stored), sizes); err == nil ||
		!strings.Contains(err.Error(), "no head that drafts is known") || !strings.Contains(err.Error(), `"llama" (leave --speculative out)`) {
		t.Errorf("got %v, want an error that names what is missing", err)
	}
}
