package optest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Shapes is a list of shapes as files keep it.
type Shapes struct{ Shapes []Shape }

// Recorder passes calls on and notes their shapes in a file: once for each new shape, and whenever the calls have
// doubled, so that whoever ends the program need not tell. A replayed step calls nothing, so counts are of queued calls.
type Recorder struct {
	bundle.Set
	path string

	mu     sync.Mutex
	shapes map[string]*Shape
	calls  int64
	next   int64 // calls at which the file is written again
	failed error
}

// NewRecorder writes to path, which it makes at once.
func NewRecorder(path string) (*Recorder, error) {
	r := &Recorder{path: path, shapes: map[string]*Shape{}, next: 1}
	return r, r.write()
}

// Watch gives a bundle whose sets pass through r. One bundle of those watched can be loaded.
func (r *Recorder) Watch(b *bundle.Bundle) *bundle.Bundle {
	watched := *b
	through := func(make func([]op.Kernel, func(string) bool) bundle.Set) func([]op.Kernel, func(string) bool) bundle.Set {
		return func(kernels []op.Kernel, has func(string) bool) bundle.Set {
			r.Set = make(kernels, has)
			return r
		}
	}
	watched.New, watched.Models = through(b.New), map[string]func([]op.Kernel, func(string) bool) bundle.Set{}
	for name, model := range b.Models {
		watched.Models[name] = through(model)
	}
	return &watched
}

// record passes a call on and notes it, if it is served. A file that cannot be written fails the stream once.
func record[T call](r *Recorder, q op.Stream, x T) bool {
	if !invoke(r.Set, q, x) {
		return false
	}
	if err := r.note(ShapeOf(x)); err != nil {
		q.Fail(err)
	}
	return true
}

func (r *Recorder) note(s Shape) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprint(s.Op, s.Args) // maps print in the order of their keys
	known := r.shapes[key]
	if known == nil {
		known = &s
		r.shapes[key] = known
		r.next = r.calls + 1
	}
	known.Count++
	r.calls++
	if r.calls < r.next || r.failed != nil {
		return nil
	}
	r.next = 2 * r.calls
	r.failed = r.write()
	return r.failed
}

// write replaces the file.
func (r *Recorder) write() error {
	list := Shapes{Shapes: []Shape{}}
	for _, s := range r.shapes {
		list.Shapes = append(list.Shapes, *s)
	}
	slices.SortFunc(list.Shapes, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(fmt.Sprint(a.Args), fmt.Sprint(b.Args)))
	})
	text, err := json.MarshalIndent(list, "", " ")
	if err == nil {
		err = os.WriteFile(r.path, append(text, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("record shapes: %w", err)
	}
	return nil
}

// The ops that have shapes to choose kernels by.

func (r *Recorder) Embedding(q op.Stream, x op.Embedding)                { record(r, q, x) }
func (r *Recorder) RMSNorm(q op.Stream, x op.RMSNorm)                    { record(r, q, x) }
func (r *Recorder) Linear(q op.Stream, x op.Linear)                      { record(r, q, x) }
func (r *Recorder) SwiGLU(q op.Stream, x op.SwiGLU)                      { record(r, q, x) }
func (r *Recorder) Logits(q op.Stream, x op.Logits)                      { record(r, q, x) }
func (r *Recorder) RotaryCache(q op.Stream, x op.RotaryCache)            { record(r, q, x) }
func (r *Recorder) PagedAttention(q op.Stream, x op.PagedAttention)      { record(r, q, x) }
func (r *Recorder) Route(q op.Stream, x op.Route)                        { record(r, q, x) }
func (r *Recorder) ExpertUp(q op.Stream, x op.ExpertUp)                  { record(r, q, x) }
func (r *Recorder) ExpertDown(q op.Stream, x op.ExpertDown)              { record(r, q, x) }
func (r *Recorder) Sample(q op.Stream, x op.Sample)                      { record(r, q, x) }
func (r *Recorder) NormLinear(q op.Stream, x op.NormLinear) bool         { return record(r, q, x) }
func (r *Recorder) GatedLinear(q op.Stream, x op.GatedLinear) bool       { return record(r, q, x) }
func (r *Recorder) NormRoute(q op.Stream, x op.NormRoute) bool           { return record(r, q, x) }
func (r *Recorder) NormRouteUp(q op.Stream, x op.NormRouteUp) bool       { return record(r, q, x) }
func (r *Recorder) LinearAdd(q op.Stream, x op.LinearAdd) bool           { return record(r, q, x) }
func (r *Recorder) ExpertDownAdd(q op.Stream, x op.ExpertDownAdd) bool   { return record(r, q, x) }
func (r *Recorder) ExpertDownNorm(q op.Stream, x op.ExpertDownNorm) bool { return record(r, q, x) }
