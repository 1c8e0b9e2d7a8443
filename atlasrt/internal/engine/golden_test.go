package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/llama"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/internal/testdata"
)

// llamaModel is a small Llama on host memory, run by the oracle, whose rows do not depend on each other.
func llamaModel(t *testing.T, d *host.Device, rows int) (*oracle.Set, model.Model) {
	t.Helper()
	folder := testdata.Shared(t, "golden/llama")
	text, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := llama.ReadConfig("config.json", text, "llama")
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := d.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	set, limits := oracle.New(op.F32), model.Limits{Rows: int32(rows), Activations: op.F32}
	counter := load.NewCounter(set, load.Stored(checkpoint, set))
	llama.New(set, counter, config, limits)
	loader, err := load.NewLoader(t.Context(), checkpoint, d, stream, set, counter)
	if err != nil {
		t.Fatal(err)
	}
	m := llama.New(set, loader, config, limits)
	if err := loader.Finish(); err != nil {
		t.Fatal(err)
	}
	return set, m
}

// A real forward pass gives the same tokens and the same bits of every log-probability alone, in a batch, in chunks, from
// cached prefixes and after preemption (T157, T162, T165).
func TestLlamaDoesNotDependOnCircumstances(t *testing.T) {
	const rows, n = 16, 12
	d := host.New(0)
	set, m := llamaModel(t, d, rows)
	start := func(t *testing.T, change func(*Config)) *Engine {
		c := Config{Device: d, Set: set, Model: m, ScratchBytes: 1 << 20, KVType: op.BF16, BlockSize: 4, Blocks: 100, MaxContext: 64, MaxBatchTokens: rows, MaxSequences: 8}
		change(&c)
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	ask := func(t *testing.T, e *Engine, prompts ...[]int32) []answer { // all at once
		var requests []Request
		for _, prompt := range prompts {
			r := greedy(prompt, n)
			r.LogProbs = 3
			requests = append(requests, r)
		}
		events, err := e.Submit(t.Context(), requests...)
		if err != nil {
			t.Fatal(err)
		}
		return readAll(events, len(requests))
	}
	r := rand.New(rand.NewPCG(1, 8))
	common := random(r, 12)
	var prompts [][]int32
	var want []answer
	alone := start(t, func(c *Config) { c.NoPrefixSharing = true })
	for range 8 {
		prompt := append(slices.Clone(common[:r.IntN(13)]), random(r, 1+r.IntN(12))...)
		prompts = append(prompts, prompt)
		a := ask(t, alone, prompt)[0]
		if a.err != nil || len(a.tokens) != n {
			t.Fatalf("alone: got %v %v", a.tokens, a.err)
		}
		want = append(want, a)
	}
	cases := []struct {
		name   string
		change func(*Config)
	}{
		{"batch of 8", func(c *Config) {}},
		{"chunks of 3", func(c *Config) { c.ChunkTokens = 3 }},
		{"no room", func(c *Config) { c.Blocks = 14 }},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			e := start(t, test.change)
			for round := range 2 {
				for i, got := range ask(t, e, prompts...) {
					if !slices.Equal(got.tokens, want[i].tokens) || !slices.EqualFunc(got.logProbs, want[i].logProbs, sameLogProb) {
						t.Errorf("round %d, prompt %d:\ngot  %v\nwant %v", round, i, fmt.Sprint(got.tokens, got.logProbs), fmt.Sprint(want[i].tokens, want[i].logProbs))
					}
				}
			}
			if s := e.Stats(); s.PrefixHits == 0 || (test.name == "no room") != (s.Preemptions > 0) {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}
