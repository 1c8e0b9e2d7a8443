package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// answer is the tokens of a request and the bits of the log-probabilities of the five likeliest at each step.
type answer struct {
	tokens []int32
	bits   []uint32
}

// ask submits a request that must come to its end. Log-probabilities are of the top likeliest tokens; -1 is none.
func ask(t *testing.T, e *engine.Engine, prompt []int32, tokens, top int) <-chan answer {
	t.Helper()
	events, err := e.Submit(context.Background(), engine.Request{Prompt: prompt, MaxTokens: tokens, Sampling: sample.Greedy(), LogProbs: top})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		for event := range events.All() {
			if event.Err != nil {
				t.Error(event.Err)
			}
			a.tokens = append(a.tokens, event.Token)
			if event.LogProb == nil {
				continue
			}
			a.bits = append(a.bits, math.Float32bits(event.LogProb.LogProb))
			for _, top := range event.LogProb.Top {
				a.bits = append(a.bits, uint32(top.Token), math.Float32bits(top.LogProb))
			}
		}
		done <- a
	}()
	return done
}

// aheadDevice is a CPU that says it works while the host does: steps are queued before the tokens of the last are read.
type aheadDevice struct{ *cpu.Device }

func (d aheadDevice) Mailbox(s device.Stream, inputs, results int) (device.Mailbox, error) {
	return host.NewMailbox(d, s, inputs, results)
}

// ahead makes steps overlap on a CPU, too.
func ahead(c *engine.Config) {
	if d, ok := c.Device.(*cpu.Device); ok {
		c.Device = aheadDevice{d}
	}
}

// The same prompt gives the same tokens and the same bits whatever else the engine does.
func TestAnswersDoNotDependOnCircumstances(t *testing.T) {
	path := testdata.Cache(t, smollm2)
	conversations := golden.SmolLM2(t)
	var prompts [][]int32
	for _, c := range conversations {
		prompts = append(prompts, c.Prompt)
	}
	for _, exact := range []bool{false, true} {
		eachHardware(t, exact, func(t *testing.T, target *instance.Target) {
			compareCircumstances(t, target, path, exact, prompts)
		})
	}
}

// The same of small models, in bf16, which all hardware has kernels for.
func TestSmallModelsDoNotDependOnCircumstances(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	var prompts [][]int32
	for _, tokens := range []int{40, 50, 56, 68} { // what is left behind chunks of 16 is a size that steps are recorded for
		prompt := make([]int32, tokens)
		for i := range prompt {
			prompt[i] = r.Int32N(256)
		}
		prompts = append(prompts, prompt)
	}
	for _, name := range families() {
		t.Run(name, func(t *testing.T) {
			folder := testdata.Shared(t, "golden/"+name)
			eachHardware(t, false, func(t *testing.T, target *instance.Target) {
				compareModes(t, target, folder, prompts)
				compareCircumstances(t, target, folder, false, prompts)
			})
			// Others run the same kernels without --exact.
			eachHardwareThat(t, keepsBF16, true, func(t *testing.T, target *instance.Target) {
				compareCircumstances(t, target, folder, true, prompts)
			})
		})
	}
}

// compareCircumstances asks for answers to prompts alone, and then among others under everything that an engine may do.
func compareCircumstances(t *testing.T, target *instance.Target, path string, exact bool, prompts [][]int32) {
	t.Helper()
	f32 := exact && target.Bundle.Activations == op.F32
	if !exact && target.Bundle.Device != "cpu" {
		t.Log("not compared: without --exact, kernels for many rows sum in an order of their own here")
		return
	}
	const tokens = 24
	m := place(t, target, path, f32)
	start := func(change func(*engine.Config)) *engine.Engine { return startEngine(t, target, m, change) }
	var want []answer
	alone := start(func(c *engine.Config) { c.Graphs, c.NoPrefixSharing, c.NoOverlap = engine.GraphsNone, true, true })
	for _, p := range prompts {
		want = append(want, <-ask(t, alone, p, tokens, 5))
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		change func(*engine.Config)
		cancel bool // a neighbour is cancelled
		check  func(engine.Stats) bool
	}{
		{"batch of 8", func(*engine.Config) {}, false, func(s engine.Stats) bool { return s.PrefixHits+s.PrefixRecomputed > 0 }},
		{"chunks of 3", func(c *engine.Config) { c.ChunkTokens = 3 }, false, nil},
		{"preempted", func(c *engine.Config) { c.Blocks, c.NoPrefixSharing = 33, true }, false, func(s engine.Stats) bool { return s.Preemptions > 0 }},
		{"all recorded", func(c *engine.Config) { c.Graphs, c.ChunkTokens = engine.GraphsFull, 16 }, false, func(s engine.Stats) bool { return s.ReplayedFull > 0 && s.GraphFallbacks == 0 }},
		{"recorded in pieces", func(c *engine.Config) { c.Graphs = engine.GraphsPiecewise }, false, func(s engine.Stats) bool { return s.ReplayedPiecewise > 0 && s.GraphFallbacks == 0 }},
		{"recorded at the start", func(c *engine.Config) { c.CaptureAtStart, c.GraphSizes = true, []int{1, 4, 8} }, false, func(s engine.Stats) bool { return s.ReplayedFull > 0 && s.GraphFallbacks == 0 }},
		{"ahead", func(c *engine.Config) { ahead(c); c.Graphs, c.ChunkTokens = engine.GraphsFullAndPiecewise, 9 }, false, func(s engine.Stats) bool { return s.ReplayedFull > 0 }},
		{"ahead and preempted", func(c *engine.Config) { ahead(c); c.Blocks, c.NoPrefixSharing, c.Graphs = 33, true, engine.GraphsNone }, false, func(s engine.Stats) bool { return s.Preemptions > 0 }},
		{"ahead, cancelled neighbour", ahead, true, func(s engine.Stats) bool { return s.Cancelled > 0 }},
		{"cancelled neighbour", func(*engine.Config) {}, true, func(s engine.Stats) bool { return s.Cancelled > 0 }},
	}
	const tries = 10 // what is to happen depends on when requests come beside the steps
	for try, i := 1, 0; i < len(cases); try++ {
		c := cases[i]
		e := start(c.change)
		if c.cancel {
			ctx, cancel := context.WithCancel(context.Background())
			events, err := e.Submit(ctx, engine.Request{Prompt: prompts[0], MaxTokens: 200, Sampling: sample.Greedy(), LogProbs: -1})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				n := 0
				for range events.All() {
					if n++; n == 5 {
						cancel()
					}
				}
			}()
		}
		top := 5
		if strings.HasPrefix(c.name, "ahead") { // no step is queued behind one whose logits are read
			top = -1
		}
		var answers []<-chan answer
		for i := range 8 {
			answers = append(answers, ask(t, e, prompts[i%len(prompts)], tokens, top))
		}
		for i, a := range answers {
			got, want := <-a, want[i%len(prompts)]
			if !slices.Equal(got.tokens, want.tokens) {
				t.Errorf("%s, request %d:\n got %v\nwant %v", c.name, i, got.tokens, want.tokens)
			} else if top >= 0 && !slices.Equal(got.bits, want.bits) {
				t.Errorf("%s, request %d: the tokens agree, the bits of their log-probabilities do not", c.name, i)
			}
		}
		stats := e.Stats()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		happened := c.check == nil || c.check(stats)
		if !happened && try < tries {
			continue
		}
		if !happened {
			t.Errorf("%s did not happen in %d tries: %+v", c.name, tries, stats)
		}
		try, i = 0, i+1
	}
}

// The logits of a prompt have the same bits however it is cut into steps.
func TestChunksGiveTheSameBits(t *testing.T) {
	for _, name := range families() {
		t.Run(name, func(t *testing.T) {
			want := golden.Read(t, name)
			tokens := slices.Repeat(want.Tokens, 2)
			eachHardwareThat(t, keepsF32, false, func(t *testing.T, target *instance.Target) {
				d := direct(t, place(t, target, want.Checkpoint, false))
				var whole []float32
				for _, chunk := range []int{0, 1, 3, 7, 64} {
					logits, err := d.Logits(tokens, chunk, true)
					if err != nil {
						t.Fatal(err)
					}
					if chunk == 0 {
						whole = logits
					}
					if i := differs(logits, whole); i >= 0 {
						t.Errorf("chunks of %d: position %d, logit %d has other bits", chunk, i*len(tokens)/len(logits), i%(len(logits)/len(tokens)))
					}
				}
			})
		})
	}
}

// differs is the first element whose bits differ; -1 where none do.
func differs(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

// compareModes asks for one answer at a time, in steps of the same sizes: however they are queued, each bit is the same on all
// hardware.
func compareModes(t *testing.T, target *instance.Target, path string, prompts [][]int32) {
	t.Helper()
	m := place(t, target, path, false)
	cases := []struct {
		name   string
		change func(*engine.Config)
		top    int
	}{
		{"eager", func(c *engine.Config) { c.Graphs, c.NoOverlap = engine.GraphsNone, true }, 5},
		{"whole", func(c *engine.Config) { c.Graphs = engine.GraphsFull }, 5},
		{"in pieces", func(c *engine.Config) { c.Graphs = engine.GraphsPiecewise }, 5},
		{"whole, at the start", func(c *engine.Config) { c.CaptureAtStart = true }, 5},
		{"ahead, eager", func(c *engine.Config) { ahead(c); c.Graphs = engine.GraphsNone }, -1},
		{"ahead, whole", func(c *engine.Config) { ahead(c); c.Graphs = engine.GraphsFull }, -1},
		{"ahead, in pieces", func(c *engine.Config) { ahead(c); c.Graphs = engine.GraphsPiecewise }, -1},
	}
	var want []answer
	for _, c := range cases {
		e := startEngine(t, target, m, func(config *engine.Config) {
			config.ChunkTokens, config.NoPrefixSharing = 16, true
			c.change(config)
		})
		for i, p := range prompts {
			got := <-ask(t, e, p, 40, c.top)
			if c.name == "eager" {
				want = append(want, got)
			} else if !slices.Equal(got.tokens, want[i].tokens) {
				t.Errorf("%s, prompt %d:\n got %v\nwant %v", c.name, i, got.tokens, want[i].tokens)
			} else if c.top >= 0 && !slices.Equal(got.bits, want[i].bits) {
				t.Errorf("%s, prompt %d: the tokens agree, the bits of their log-probabilities do not", c.name, i)
			}
		}
		s := e.Stats()
		if replayed := s.ReplayedFull + s.ReplayedPiecewise; s.GraphFallbacks > 0 || (replayed > 0) == strings.Contains(c.name, "eager") {
			t.Errorf("%s: %+v", c.name, s)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// startEngine starts an engine on a small cache.
func startEngine(t *testing.T, target *instance.Target, m *instance.Loaded, change func(*engine.Config)) *engine.Engine {
	t.Helper()
	c := engine.Config{
		Device: target.Device, Set: target.Set, Model: m.Model, ScratchBytes: m.Scratch, KVType: m.Sizes.KVType, BlockSize: 16,
		Blocks: 256, MaxBatchTokens: m.Sizes.MaxBatchTokens, MaxSequences: m.Sizes.MaxSequences, MaxContext: m.Sizes.MaxContext,
	}
	change(&c)
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
