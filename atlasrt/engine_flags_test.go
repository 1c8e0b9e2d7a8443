package main

import (
	"reflect"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
)

func TestOptimizationLevels(t *testing.T) {
	cases := []struct {
		args []string
		want engine.Options
	}{
		{nil, engine.Options{Graphs: engine.GraphsFullDecodeOnly}},
		{[]string{"-O0"}, engine.Options{Graphs: engine.GraphsNone, NoOverlap: true}},
		{[]string{"-O", "1"}, engine.Options{Graphs: engine.GraphsNone}},
		{[]string{"-O3"}, engine.Options{Graphs: engine.GraphsFullDecodeOnly, CaptureAtStart: true}},
		{[]string{"--optimization-level=0", "--graph-mode=full"}, engine.Options{Graphs: engine.GraphsFull, NoOverlap: true}},
		{[]string{"--graph-mode", "full_and_piecewise", "--graph-capture-sizes", "1,2,4"},
			engine.Options{Graphs: engine.GraphsFullAndPiecewise, GraphSizes: []int{1, 2, 4}}},
	}
	for _, test := range cases {
		for _, command := range []string{"serve", "bench"} {
			c, _, err := parseLine(t, append([]string{command}, test.args...)...)
			if err != nil {
				t.Errorf("%s %v: %v", command, test.args, err)
				continue
			}
			flags := c.Serve.engineFlags
			if command == "bench" {
				flags = c.Bench.engineFlags
			}
			if got := flags.set(engine.Options{}); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s %v: got %+v, want %+v", command, test.args, got, test.want)
			}
		}
	}
	for _, args := range [][]string{{"serve", "-O4"}, {"serve", "--graph-mode", "some"}, {"serve", "--graph-capture-sizes", "a"}} {
		if _, _, err := parseLine(t, args...); err == nil {
			t.Errorf("%v: got no error", args)
		}
	}
}
