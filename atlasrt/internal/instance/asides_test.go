package instance

import (
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
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
