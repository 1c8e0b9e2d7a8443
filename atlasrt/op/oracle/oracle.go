// Package oracle computes every op of package op in plain Go, and so says what the right answer is.
//
// It reads and writes host memory, computes in float64, and rounds once to the type of the result. An operation is done when its method
// returns; its stream is only used to report failures. A packed matrix is the checkpoint's own bytes. The bits of a row depend on that row
// alone. Speed does not matter here: each method should be as easy to check against its formula in package op as it can be.
package oracle

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Set is the reference kernel set. It keeps no state: any number of goroutines may use it.
type Set struct {
	act   op.DType        // what act means in op's tags
	round func([]float64) // rounds a row of activations before it is multiplied; nil: rows stay as they are

	watched []*Unrounded // buffers whose unrounded results are noted
}

// Unrounded is the results in one buffer before they were rounded to its element type.
type Unrounded struct {
	at     op.Ptr    // the buffer
	is     op.DType  // its element type
	Values []float64 // by element; NaN where nothing was stored
	Added  []float64 // the part of Values that was rounded and then added to what the buffer held; NaN where nothing was added
}

// NewUnrounded makes one for n elements of a type at an address.
func NewUnrounded(at op.Ptr, is op.DType, n int64) *Unrounded {
	u := &Unrounded{at: at, is: is, Values: make([]float64, n), Added: make([]float64, n)}
	for i := range n {
		u.Values[i], u.Added[i] = math.NaN(), math.NaN()
	}
	return u
}

// Watching is the set that also notes the unrounded results of some buffers. One goroutine at a time may call it.
func (s *Set) Watching(list ...*Unrounded) *Set {
	w := *s
	w.watched = list
	return &w
}

// New makes a set whose activations are F32 or BF16.
func New(act op.DType) *Set {
	if act != op.F32 && act != op.BF16 {
		panic("BUG: oracle activations are " + act.String() + ", want f32 or bf16")
	}
	return &Set{act: act}
}

// Scratch implements bundle.Set: the reference asks for none.
func (s *Set) Scratch(any) int64 { return 0 }

// Rounding is the reference for kernels that round activations before they multiply them. The rule is named as in manifests: "e4m3x128"
// or "e4m3xrow"; any other is an error.
func (s *Set) Rounding(rule string) (*Set, error) {
	r := *s
	switch rule {
	case "e4m3x128":
		r.round = func(row []float64) { RoundE4M3(row, op.F8BlockCols) }
	case "e4m3xrow":
		r.round = func(row []float64) { RoundE4M3(row, len(row)) }
	default:
		return nil, fmt.Errorf("the oracle does not know the rounding %q of activations", rule)
	}
	return &r, nil
}

// factors are rows of activations, rounded where the set rounds them before it multiplies.
func (s *Set) factors(p op.Ptr, first, rows, cols int) []float64 {
	in := load(p, s.act, first*cols, rows*cols)
	for r := 0; s.round != nil && r < rows; r++ {
		s.round(in[r*cols : (r+1)*cols])
	}
	return in
}

// known reports whether the set understands a weight's scheme; if not it fails the stream.
func known(q op.Stream, name string, w op.Weight) bool {
	if packedBytes(w.Scheme, w.Rows, w.Cols) > 0 {
		return true
	}
	q.Fail(fmt.Errorf("%s: the oracle has no %d×%d matrices of scheme %s", name, w.Rows, w.Cols, w.Scheme))
	return false
}

// parallel splits 0 … n-1 into parts and calls body for each on a goroutine of its own.
func parallel(n int, body func(from, to int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		body(0, n)
		return
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() { body(n*w/workers, n*(w+1)/workers) })
	}
	group.Wait()
}
