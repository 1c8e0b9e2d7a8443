package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

func TestTogether(t *testing.T) {
	every := func(start, step, n int) (out []time.Duration) {
		for i := range n {
			out = append(out, time.Duration(start+i*step)*time.Millisecond)
		}
		return out
	}
	late := every(0, 10, 11)
	late[9] += 7 * time.Millisecond
	late[10] += 7 * time.Millisecond
	cases := []struct {
		name  string
		times [][]time.Duration
		want  float64
	}{
		{"one", [][]time.Duration{every(500, 10, 11)}, 100},
		{"one whose last tokens are late", [][]time.Duration{late, every(10, 10, 11)}, 200},
		{"three tokens", [][]time.Duration{every(7, 10, 3)}, 0},
		{"two that begin together", [][]time.Duration{every(5, 10, 11), every(5, 10, 11)}, 200},
		{"a late one", [][]time.Duration{every(0, 10, 41), every(200, 10, 41)}, 200},
		{"one ended before the other began", [][]time.Duration{every(0, 1, 5), every(100, 1, 5)}, 0},
		{"single tokens", [][]time.Duration{every(7, 0, 1)}, 0},
	}
	for _, test := range cases {
		if got := together(test.times); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: got %v tokens per second, want %v", test.name, got, test.want)
		}
	}
}

func TestSpread(t *testing.T) {
	if got, want := spreadOf([]float64{3, 1, 2}), (spread{2, 1, 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBenchReport(t *testing.T) {
	r := benchReport{
		Checkpoint: "tiny", Hardware: "abacus", Threads: 2, Level: 2, GraphMode: "auto", BatchTokens: 512,
		Start: []stage{{"load weights", 1.25}, {"start the engine", 0.5}},
		Measurements: []measurement{
			{What: "decode of 64 after 1024", Sequences: 4, Rate: spread{400, 390, 410}, Time: spread{10, 9.75, 10.25}, Host: 12, HostHalf: 10, Drafts: 2.75, Right: 1.83},
			{What: "decode of 64 after 1024", Sequences: 64, Note: "at most 10 fit"},
		},
	}
	var text strings.Builder
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tiny on abacus, 2 threads, -O2", "1.750", "400.0", "9.75", "12.0", "2.75", "1.83", "at most 10 fit"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"tokens_per_second":{"median":400,"least":390,"most":410}`; !strings.Contains(string(data), want) {
		t.Errorf("JSON lacks %s: %s", want, data)
	}
}

// More sequences at once than a server lets wait.
func TestBenchOfManySequences(t *testing.T) {
	stored, err := dummy.Parse("bf16")
	if err != nil {
		t.Fatal(err)
	}
	target := onOracle(op.F32)
	const n = engine.DefaultWaiting + 44
	m := placeSized(t, target, madeUp(t, target, tinyLlama, stored), instance.Sizes{MaxContext: 16, MaxSequences: n, MaxBatchTokens: 512, KVType: op.F32, Memory: 1 << 30})
	c := benchCommand{Concurrency: []int{1, n}, Context: 4}
	e, err := m.Start(c.options())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := newBencher(e, m.Layout.Vocab).run(n, c.Context, 2); err != nil {
		t.Fatal(err)
	}
}

// A profile says which step it is of.
func TestProfileNamesItsStep(t *testing.T) {
	row := []optest.ProfileRow{{Op: "Linear", Calls: 1}}
	r := profileReport{Checkpoint: "tiny", Hardware: "abacus", Context: 10, Steps: []optest.Profile{
		{Step: optest.Step{Tokens: 4, Sequences: 1, Draws: 1, Drafts: 3}, Rows: row},
		{Step: optest.Step{Tokens: 8, Sequences: 2, Draws: 8, Drafts: 3}, Drafting: optest.Timing{Median: 2500}, Rows: row},
		{Step: optest.Step{Tokens: 2, Sequences: 2, Draws: 2}, Rows: row},
	}}
	var text strings.Builder
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\na prompt of 4 tokens: ", "\n2 sequences after 10 tokens, each with 3 guesses: ", "\nwhat is behind its draws, which counts guesses and makes new ones, takes 2.50 µs of it\n", "\n2 sequences after 10 tokens: "} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("%q comes %d times:\n%s", want, strings.Count(text.String(), want), text.String())
		}
	}
}
