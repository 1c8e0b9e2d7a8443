package instance

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// argmax is the index of the largest value, the lowest where several are.
func argmax(values []float32) int32 {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return int32(best)
}

// A real trained model through the oracle: block formats, permuted rows and the family at once. One short prompt, since
// the oracle is slow.
func TestSmolLM2OnTheOracle(t *testing.T) {
	path := testdata.Cache(t, "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
	conversations := golden.SmolLM2(t)
	shortest := 0
	for i, c := range conversations {
		if len(c.Prompt) < len(conversations[shortest].Prompt) {
			shortest = i
		}
	}
	want := conversations[shortest]
	d := host.New(0)
	rows := int32(len(want.Prompt))
	set := oracle.New(op.F32)
	m := direct(t, d, set, loaded(t, path, d, set, model.Limits{Rows: rows, Activations: op.F32}), int(rows), int(rows)+2)
	last, err := m.Logits(want.Prompt, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	worst := golden.Worst(last, want.Last)
	t.Logf("conversation %d, %d tokens: max |Δlogit| %.1e", shortest, rows, worst)
	if !(worst <= 2e-3) {
		t.Errorf("max |Δlogit| is %v, want at most 2e-3", worst)
	}
	if got := argmax(last); got != want.Greedy[0] {
		t.Errorf("first token %d, want %d", got, want.Greedy[0])
	}
}
