package main

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
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
			want := golden.Read(t, name)
			if slices.Contains(families(), name) {
				t.Run("oracle-f32", func(t *testing.T) { agrees(t, direct(t, place(t, onOracle(op.F32), want.Checkpoint, true)), want) })
			}
			eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) {
				sizes := smallSizes()
				sizes.MaxContext, sizes.KVType = len(want.Tokens)+len(want.Greedy), op.F32
				d, err := placeSized(t, target, opened(t, want.Checkpoint), sizes).Direct(sizes.MaxContext)
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
			want := golden.Read(t, name)
			eachHardwareThat(t, keepsF32, false, func(t *testing.T, target *instance.Target) {
				judged(t, target, want.Checkpoint, want.Tokens, 128, inF32)
			})
		})
	}
}

func TestExactSmolLM2WritesWhatTransformersWrites(t *testing.T) {
	path := testdata.Cache(t, smollm2)
	eachHardwareThat(t, keepsF32, true, func(t *testing.T, target *instance.Target) {
		d := direct(t, place(t, target, path, true))
		for i, c := range golden.SmolLM2(t) {
			logits, err := d.Logits(c.Prompt, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			difference := golden.Worst(logits, c.Last)
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
	eachHardware(t, false, func(t *testing.T, target *instance.Target) {
		m := place(t, target, path, false)
		d, vocab := direct(t, m), int(m.Layout.Vocab)
		compared, agreed := 0, 0
		for i, c := range golden.SmolLM2(t) {
			logits, err := d.Logits(append(slices.Clone(c.Prompt), c.Greedy[:len(c.Greedy)-1]...), 0, true)
			if err != nil {
				t.Fatal(err)
			}
			logits = logits[(len(c.Prompt)-1)*vocab:]
			if difference := golden.Worst(logits[:vocab], c.Last); !(difference <= 2) {
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
