package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/safetensors"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// testedKernels is a folder with images that take the place of the linked ones, for kernels that are built where tests run.
func testedKernels() string { return os.Getenv("ATLASRT_KERNELS") }

// eachHardware runs a test on the compiled kernels of all hardware that this machine can run.
func eachHardware(t *testing.T, exact bool, test func(t *testing.T, target *instance.Target)) {
	t.Helper()
	eachHardwareThat(t, func(*bundle.Bundle) bool { return true }, exact, test)
}

// eachHardwareThat does so on hardware whose kernels a test is about.
func eachHardwareThat(t *testing.T, concerns func(*bundle.Bundle) bool, exact bool, test func(t *testing.T, target *instance.Target)) {
	t.Helper()
	all := slices.DeleteFunc(bundles(), func(b *bundle.Bundle) bool { return !concerns(b) })
	if len(all) == 0 {
		t.Error("no hardware has kernels that this test is about")
	}
	for _, b := range all {
		t.Run(b.Hardware, func(t *testing.T) {
			h := instance.Hardware{Bundles: bundles(), Name: b.Hardware, Kernels: testedKernels(), Threads: 2, Exact: exact}
			if !h.Runs() {
				t.Skipf("this processor cannot run %s", b.Hardware)
			}
			target, err := h.Open()
			if err != nil && os.Getenv("CI") != "true" {
				t.Skipf("%v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer target.Device.Close()
			test(t, target)
		})
	}
}

// place loads a checkpoint on a target, for steps that hold a whole prompt.
func place(t *testing.T, target *instance.Target, path string, exact bool) *instance.Loaded {
	t.Helper()
	sizes := smallSizes()
	if exact {
		sizes.KVType = op.F32
	}
	return placeSized(t, target, opened(t, path), sizes)
}

func smallSizes() instance.Sizes {
	return instance.Sizes{MaxContext: 512, MaxSequences: 8, MaxBatchTokens: 128, KVType: op.BF16}
}

func opened(t *testing.T, path string) weights.Checkpoint {
	t.Helper()
	c, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// placeSized loads a checkpoint for steps of some size.
func placeSized(t *testing.T, target *instance.Target, c weights.Checkpoint, sizes instance.Sizes) *instance.Loaded {
	t.Helper()
	p, err := instance.Prepare(target, c, sizes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func direct(t *testing.T, m *instance.Loaded) *engine.Direct {
	t.Helper()
	d, err := m.Direct(512)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// readWords reads a tensor of 32-bit elements.
func readWords[T int32 | float32](t *testing.T, f *safetensors.File, name string, from func(uint32) T) []T {
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

func asInt(u uint32) int32 { return int32(u) }

// golden is what transformers computed for a checkpoint.
type golden struct {
	checkpoint     string // the folder that holds it
	tokens, greedy []int32
	logits         []float32 // of the last positions, or of all
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	g, logits := golden{checkpoint: testdata.Shared(t, "golden/"+name)}, "logits"
	f, err := safetensors.Open(g.checkpoint + "/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if short, long := strings.CutSuffix(name, "-long"); long {
		g.checkpoint, logits = testdata.Shared(t, "golden/"+short), "logits_last"
	}
	g.tokens, g.greedy, g.logits = readWords(t, f, "tokens", asInt), readWords(t, f, "greedy", asInt), readWords(t, f, logits, math.Float32frombits)
	return g
}

// worst is the largest difference between two rows.
func worst[F float32 | float64](got, want []F) (most float64) {
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= most) {
			most = d
		}
	}
	return most
}

// relative is the L2 norm of a row's difference by the row's own.
func relative(got, want []float32) float64 {
	difference, norm := 0.0, 0.0
	for i := range want {
		d := float64(got[i] - want[i])
		difference += d * d
		norm += float64(want[i]) * float64(want[i])
	}
	return math.Sqrt(difference / norm)
}

// keepsF32 and keepsBF16 say what activations are between kernels.
func keepsF32(b *bundle.Bundle) bool  { return b.Activations == op.F32 }
func keepsBF16(b *bundle.Bundle) bool { return b.Activations == op.BF16 }

// families are the golden checkpoints of unquantised weights, one for each family.
func families() []string {
	return []string{"llama", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_5", "qwen3_5_moe"}
}

func TestExactKernelsAgreeWithTransformers(t *testing.T) {
	for _, name := range append(families(), "qwen3_next-mtp", "qwen3_5-long", "qwen3_5_text", "qwen3_5_moe-mtp") {
		t.Run(name, func(t *testing.T) {
			want := readGolden(t, name)
			if slices.Contains(families(), name) {
				t.Run("oracle-f32", func(t *testing.T) { agrees(t, direct(t, place(t, onOracle(op.F32), want.checkpoint, true)), want) })
			}
			eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) {
				sizes := smallSizes()
				sizes.MaxContext, sizes.KVType = len(want.tokens)+len(want.greedy), op.F32
				d, err := placeSized(t, target, opened(t, want.checkpoint), sizes).Direct(sizes.MaxContext)
				if err != nil {
					t.Fatal(err)
				}
				agrees(t, d, want)
			})
		})
	}
}

func TestDefaultKernelsStayClose(t *testing.T) {
	for _, name := range families() {
		t.Run(name, func(t *testing.T) {
			want := readGolden(t, name)
			eachHardwareThat(t, keepsF32, false, func(t *testing.T, target *instance.Target) {
				judged(t, target, want.checkpoint, want.tokens, 128, inF32)
			})
		})
	}
}

type answered struct {
	Prompt  []int32   `json:"prompt_ids"`
	Greedy  []int32   `json:"greedy_ids"`
	Margins []float64 `json:"margins"`
}

// smollm2Golden is what transformers answers in six conversations, and its logits after each prompt.
func smollm2Golden(t *testing.T) (all []answered, last [][]float32) {
	t.Helper()
	data, err := os.ReadFile(testdata.Shared(t, "golden/smollm2/golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(testdata.Shared(t, "golden/smollm2/golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		last = append(last, readWords(t, f, strconv.Itoa(i)+".logits_last", math.Float32frombits))
	}
	return all, last
}

func TestExactSmolLM2WritesWhatTransformersWrites(t *testing.T) {
	path := testdata.Cache(t, smollm2)
	all, last := smollm2Golden(t)
	eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) {
		d := direct(t, place(t, target, path, true))
		for i, c := range all {
			logits, err := d.Logits(c.Prompt, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			difference := worst(logits, last[i])
			t.Logf("conversation %d: max |Δlogit| %.1e", i, difference)
			if !(difference <= 2e-3) {
				t.Errorf("conversation %d: max |Δlogit| is %v, want at most 2e-3", i, difference)
			}
			greedy, err := d.Greedy(c.Prompt, len(c.Greedy))
			if err != nil {
				t.Fatal(err)
			}
			for step := range c.Greedy {
				if c.Margins[step] < 0.01 {
					break // from a tie on, either text is right
				}
				if greedy[step] != c.Greedy[step] {
					t.Errorf("conversation %d, step %d: got token %d, want %d", i, step, greedy[step], c.Greedy[step])
					break
				}
			}
		}
	})
}

func TestDefaultSmolLM2ChoosesWhatTransformersChooses(t *testing.T) {
	path := testdata.Cache(t, smollm2)
	all, last := smollm2Golden(t)
	eachHardware(t, false, func(t *testing.T, target *instance.Target) {
		m := place(t, target, path, false)
		d, vocab := direct(t, m), int(m.Layout.Vocab)
		compared, agreed := 0, 0
		for i, c := range all {
			logits, err := d.Logits(append(slices.Clone(c.Prompt), c.Greedy[:len(c.Greedy)-1]...), 0, true)
			if err != nil {
				t.Fatal(err)
			}
			logits = logits[(len(c.Prompt)-1)*vocab:]
			if difference := worst(logits[:vocab], last[i]); !(difference <= 2) {
				t.Errorf("conversation %d: max |Δlogit| is %v, want at most 2", i, difference)
			}
			for step, want := range c.Greedy {
				row := logits[step*vocab : (step+1)*vocab]
				if c.Margins[step] < 0.5 {
					continue
				}
				compared++
				if got := int32(slices.Index(row, slices.Max(row))); got == want {
					agreed++
				} else {
					t.Errorf("conversation %d, step %d (margin %.2f): got token %d, want %d", i, step, c.Margins[step], got, want)
				}
			}
		}
		t.Logf("%d of %d steps with a margin of at least 0.5 agree", agreed, compared)
	})
}
