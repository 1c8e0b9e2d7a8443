package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// What is collapsed is exactly what is there, in the order in which it comes.
func TestCollapse(t *testing.T) {
	layer := func(i int, stored string) readTensor {
		return readTensor{fmt.Sprintf("model.layers.%d.up.weight", i), "[2 2]", stored, "q4_1"}
	}
	expert := func(l, e int) readTensor {
		return readTensor{fmt.Sprintf("layers.%d.experts.%d.w", l, e), "[1]", "F32", "f32"}
	}
	cases := []struct {
		what    string
		tensors []readTensor
		want    string
	}{
		{"nothing", nil, ""},
		{"no layers", []readTensor{{"a.weight", "[1]", "F32", "f32"}, {"b", "[1]", "F32", "f32"}}, "a.weight 1, b 1"},
		{"layers", []readTensor{layer(0, "Q4_1"), layer(1, "Q4_1"), layer(2, "Q4_1")}, "model.layers.{0…2}.up.weight 3"},
		{"in any order", []readTensor{layer(2, "Q4_1"), layer(0, "Q4_1"), layer(1, "Q4_1")}, "model.layers.{0…2}.up.weight 3"},
		{"with gaps", []readTensor{layer(0, "Q4_1"), layer(1, "Q4_1"), layer(3, "Q4_1"), layer(5, "Q4_1"), layer(6, "Q4_1"), layer(7, "Q4_1")}, "model.layers.{0, 1, 3, 5…7}.up.weight 6"},
		{"stored in two ways", []readTensor{layer(0, "Q4_1"), layer(1, "Q6_K"), layer(2, "Q4_1")}, "model.layers.{0, 2}.up.weight 2, model.layers.1.up.weight 1"},
		{"experts", []readTensor{expert(0, 0), expert(0, 1), expert(1, 0), expert(1, 1)}, "layers.{0, 1}.experts.{0, 1}.w 4"},
		{"experts that lack one", []readTensor{expert(0, 0), expert(0, 1), expert(1, 0)}, "layers.0.experts.{0, 1}.w 2, layers.1.experts.0.w 1"},
		{"numbers that are none", []readTensor{{"a.01.b", "", "", ""}, {"a.1x.b", "", "", ""}, {"a.-1.b", "", "", ""}}, "a.01.b 1, a.1x.b 1, a.-1.b 1"},
	}
	for _, c := range cases {
		var got []string
		for _, g := range collapse(c.tensors) {
			got = append(got, fmt.Sprintf("%s %d", g.name(), len(g.numbers)))
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

// States have a place in the line where there are any.
func TestPartsOfMemory(t *testing.T) {
	m := engine.Memory{Weights: 3 << 30, Inputs: 1 << 20, Cache: 2 << 30, Tokens: 4096}
	const want = "weights 3.00 GiB, work 1.0 MiB, cache 2.00 GiB for 4096 tokens"
	if got := parts(m); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.States, m.Slots = 1<<30, 16
	if got := parts(m); got != want+", states 1.00 GiB for 16 sequences" {
		t.Errorf("got %q, want %q and the states", got, want)
	}
}

func TestSummary(t *testing.T) {
	checkpoint, err := weights.Open(written(t, filepath.Join(t.TempDir(), "tiny")))
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	s, err := summarize("tiny", checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	p, err := instance.Prepare(onOracle(op.F32), checkpoint, instance.Sizes{KVType: op.F32, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	s.serve(p)
	var out, tensors bytes.Buffer
	if err := s.table.Print(&out); err != nil {
		t.Fatal(err)
	}
	// The parameters: embedding and head 2·64·32, per layer 4·32·32 + 3·32·32 + 2·32, the last norm 32.
	for _, want := range []string{"tiny", "llama", "BF16 ", "(25824)", "none", "64 tokens", "3 of attention", "--memory", "yes, 64 sequences of 64 tokens"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", out.String(), want)
		}
	}
	for all, lines := range map[bool]int{true: 1 + 3 + 3*9, false: 1 + 3 + 9} {
		tensors.Reset()
		if err := printTensors(&tensors, s.tensors, all); err != nil || strings.Count(tensors.String(), "\n") != lines {
			t.Errorf("all %v: got %d lines, %v, want %d:\n%s", all, strings.Count(tensors.String(), "\n"), err, lines, &tensors)
		}
	}
}
