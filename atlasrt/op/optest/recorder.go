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
	"github.com/atlas-inference/atlas/generated/ops"
)

// Shapes is a list of shapes as files keep it.
type Shapes struct{ Shapes []Shape }

// Recorder passes calls on and notes their shapes in a file: once for each new shape, and whenever the calls have
// doubled, so that whoever ends the program need not tell. A replayed step calls nothing, so counts are of queued calls.
type Recorder struct {
	ops.Tap
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
	r.Each = r.record
	return r, r.write()
}

// Watch gives a set whose calls pass through r to another, the one that is watched.
func (r *Recorder) Watch(set bundle.Set) bundle.Set {
	r.Set = set
	return r
}

// record passes a call on and notes it, if it is served and there are kernels to choose from by its shape. A file that cannot be written
// fails the stream once.
func (r *Recorder) record(q op.Stream, args any) bool {
	if !ops.Call(r.Set, q, args) {
		return false
	}
	switch args.(type) {
	case op.Pack, op.Unpack, op.Copy, op.Fill, op.Convert, op.RotaryAngles, op.Resolve:
		return true
	}
	if err := r.note(ShapeOf(args)); err != nil {
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
