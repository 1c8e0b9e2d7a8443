package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// What a published layout has beside the language model is known, and counted.
func TestAsidesOfGoldens(t *testing.T) {
	cases := map[string][]string{
		"qwen3_next": nil,
		"qwen3_next-mtp": {
			"41 tensors mtp.… are left out: they guess later tokens, which is not asked for",
		},
		"qwen3_5_moe-mtp": {
			"35 tensors mtp.… are left out: they guess later tokens, which is not asked for",
			"21 tensors model.visual.… are left out: images are not served",
		},
		"qwen3_moe": nil,
	}
	for golden, want := range cases {
		c, err := weights.Open(testdata.Shared(t, "golden/"+golden))
		if err != nil {
			t.Fatal(err)
		}
		if got := weights.LeftOut(c, asides(c.Config().StringOr("model_type", ""))); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", golden, got, want)
		}
		c.Close()
	}
}

// What of a quantised checkpoint has no effect, and what its lists leave out, is said in a line each.
func TestQuantisedGoldens(t *testing.T) {
	cases := map[string][]string{
		"qwen3_moe-nvfp4-modelopt": {"quantising keys and values (0 tensors", "quantising activations (91 tensors"},
		"llama-fp8-block":          nil,
		"qwen3_next-nvfp4-modelopt": {"model.layers.0.linear_attn.in_proj_ba.weight (and 2 more) is stored as plain and said to be nvfp4 by quant_algo NVFP4",
			"quantising keys and values", "quantising activations"},
	}
	for golden, want := range cases {
		c, err := weights.Open(testdata.Shared(t, "golden/"+golden))
		if err != nil {
			t.Fatal(err)
		}
		target := &Target{Device: host.New(0), Set: oracle.New(op.F32), Bundle: &bundle.Bundle{Activations: op.F32}}
		p, err := counted(target, c, Sizes{})
		if err != nil {
			t.Fatal(err)
		}
		got := p.Quantised()
		if len(got) != len(want) {
			t.Errorf("%s: got %q, want %q", golden, got, want)
			continue
		}
		for i, line := range got {
			if !strings.Contains(line, want[i]) {
				t.Errorf("%s: got %q, want %q", golden, line, want[i])
			}
		}
		c.Close()
	}
}
