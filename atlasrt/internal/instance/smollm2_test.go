package instance

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// conversation is one entry of golden/smollm2/golden.json.
type conversation struct {
	Prompt  []int32   `json:"prompt_ids"`
	Greedy  []int32   `json:"greedy_ids"`
	Margins []float64 `json:"margins"`
}

func smollm2Conversations(t *testing.T) []conversation {
	t.Helper()
	data, err := os.ReadFile(testdata.Shared(t, "golden/smollm2/golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []conversation
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// smollm2Logits are transformers' logits after prompt i.
func smollm2Logits(t *testing.T, i int) []float32 {
	t.Helper()
	f, err := safetensors.Open(testdata.Shared(t, "golden/smollm2/golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, ok := f.Tensor(strconv.Itoa(i) + ".logits_last")
	if !ok {
		t.Fatalf("no logits for conversation %d", i)
	}
	v := make([]float32, len(tensor.Data)/4)
	for j := range v {
		v[j] = math.Float32frombits(binary.LittleEndian.Uint32(tensor.Data[4*j:]))
	}
	return v
}

func worstDifference(got, want []float32) float64 {
	worst := 0.0
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= worst) {
			worst = d
		}
	}
	return worst
}

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
	conversations := smollm2Conversations(t)
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
	worst := worstDifference(last, smollm2Logits(t, shortest))
	t.Logf("conversation %d, %d tokens: max |Δlogit| %.1e", shortest, rows, worst)
	if !(worst <= 2e-3) {
		t.Errorf("max |Δlogit| is %v, want at most 2e-3", worst)
	}
	if got := argmax(last); got != want.Greedy[0] {
		t.Errorf("first token %d, want %d", got, want.Greedy[0])
	}
}
