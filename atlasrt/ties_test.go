package main

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// routeWatch remembers for each row how close the first expert not chosen came to the last one chosen.
type routeWatch struct {
	bundle.Set
	margins []float64 // of probabilities, the least over all layers, by row
}

func (w *routeWatch) Route(q op.Stream, a op.Route) {
	w.Set.Route(q, a)
	stream, ok := q.(device.Stream)
	if !ok {
		return // a step that is only measured
	}
	logits := make([]float32, a.Rows*a.Experts)
	stream.Read(unsafe.Slice((*byte)(unsafe.Pointer(&logits[0])), 4*len(logits)), a.Logits)
	for r := range int(a.Rows) {
		row := logits[r*int(a.Experts) : (r+1)*int(a.Experts)-int(a.Shared)]
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		slices.Sort(row)
		last := len(row) - int(a.TopK-a.Shared)
		margin := (math.Exp(float64(row[last])) - math.Exp(float64(row[last-1]))) / sum
		w.margins[r] = min(w.margins[r], margin)
	}
}

// Routers are left to the plain operations, of which Route is looked at.

func (w *routeWatch) NormRoute(op.Stream, op.NormRoute) bool     { return false }
func (w *routeWatch) NormRouteUp(op.Stream, op.NormRouteUp) bool { return false }

// nearTie is a margin within which roundings to bf16 may change the choice of experts.
const nearTie = 1e-2

// expertTies tells at which positions two experts tie within a margin in some layer, where nothing is rounded.
func expertTies(t *testing.T, folder string, tokens []int32, near float64) []bool {
	t.Helper()
	target := onOracle(op.F32)
	watch := &routeWatch{Set: target.Set, margins: make([]float64, len(tokens))}
	for i := range watch.margins {
		watch.margins[i] = 1
	}
	target.Set = watch
	if _, err := direct(t, place(t, target, folder, true)).Logits(tokens, 0, true); err != nil {
		t.Fatal(err)
	}
	tied := make([]bool, len(tokens))
	for i, margin := range watch.margins {
		tied[i] = margin < near
	}
	return tied
}
