// Package golden has what HuggingFace transformers computed for small checkpoints and for SmolLM2, for tests that judge models and kernels by it.
package golden

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// Golden is what transformers computed in f32 for a checkpoint.
type Golden struct {
	Checkpoint string    // the folder that holds it
	Tokens     []int32   // a prompt
	Greedy     []int32   // the likeliest tokens behind the prompt, each following from those before
	Logits     []float32 // [positions,vocabulary]: behind the last tokens of the prompt, or behind all

	file *safetensors.File // golden.safetensors
}

// Read reads golden/NAME of the folder that ATLAS_TESTDATA names. NAME-long is a longer prompt of the checkpoint NAME.
func Read(t testing.TB, name string) Golden {
	t.Helper()
	g := Golden{Checkpoint: testdata.Shared(t, "golden/"+name)}
	g.file = open(t, g.Checkpoint+"/golden.safetensors")
	logits := "logits"
	if short, long := strings.CutSuffix(name, "-long"); long {
		g.Checkpoint, logits = testdata.Shared(t, "golden/"+short), "logits_last"
	}
	g.Tokens, g.Greedy, g.Logits = g.Ints(t, "tokens"), g.Ints(t, "greedy"), g.Floats(t, logits)
	return g
}

// Ints are the elements of a further tensor of i32.
func (g Golden) Ints(t testing.TB, name string) []int32 {
	t.Helper()
	return words(t, g.file, name, func(word uint32) int32 { return int32(word) })
}

// Floats are the elements of a further tensor of f32.
func (g Golden) Floats(t testing.TB, name string) []float32 {
	t.Helper()
	return words(t, g.file, name, math.Float32frombits)
}

func open(t testing.TB, path string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func words[T int32 | float32](t testing.TB, f *safetensors.File, name string, from func(uint32) T) []T {
	t.Helper()
	tensor, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("%s has no %s", f.Path(), name)
	}
	v := make([]T, len(tensor.Data)/4)
	for i := range v {
		v[i] = from(binary.LittleEndian.Uint32(tensor.Data[4*i:]))
	}
	return v
}

// Conversation is what SmolLM2-135M-Instruct answers.
type Conversation struct {
	Prompt  []int32   `json:"prompt_ids"` // of the user, in the chat template
	Greedy  []int32   `json:"greedy_ids"` // the answer, the likeliest token each time
	Margins []float64 `json:"margins"`    // by how much the logit of each token of Greedy leads the next one's
	Last    []float32 `json:"-"`          // [vocabulary]: the logits behind Prompt
}

// SmolLM2 are six conversations.
func SmolLM2(t testing.TB) []Conversation {
	t.Helper()
	data, err := os.ReadFile(testdata.Shared(t, "golden/smollm2/golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Conversation
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	f := open(t, testdata.Shared(t, "golden/smollm2/golden.safetensors"))
	for i := range all {
		all[i].Last = words(t, f, strconv.Itoa(i)+".logits_last", math.Float32frombits)
	}
	return all
}

// Worst is the largest difference between numbers at the same place.
func Worst[F float32 | float64](got, want []F) (most float64) {
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= most) {
			most = d
		}
	}
	return most
}
