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

// Shapes is the content of a file of shapes, in JSON.
type Shapes struct{ Shapes []Shape }

// Recorder is a kernel set that passes calls on to another and writes their shapes to a file. The file is written at each new shape, and
// when the number of calls has doubled, so that it is nearly complete however the program ends. Replayed steps make no calls: counts are
// those of calls that were queued.
type Recorder struct {
	ops.Tap
	path string

	mu     sync.Mutex
	shapes map[string]*Shape // by operation and sizes
	calls  int64
	next   int64 // number of calls at which the file is written again
	failed error // of writing the file, after which it is not written again
}

// NewRecorder makes a recorder that writes to path, and writes an empty list at once, so that a wrong path fails early.
func NewRecorder(path string) (*Recorder, error) {
	r := &Recorder{path: path, shapes: map[string]*Shape{}, next: 1}
	r.Each = r.record
	return r, r.write()
}

// Watch returns the recorder as a set that passes calls on to set.
func (r *Recorder) Watch(set bundle.Set) bundle.Set {
	r.Set = set
	return r
}

// record passes a call on, and notes its shape if it was served and tuning could choose its kernel. Where the file cannot be written, the
// stream fails, once.
func (r *Recorder) record(q op.Stream, args any) bool {
	if !ops.Call(r.Set, q, args) {
		return false
	}
	switch args.(type) {
	case op.Pack, op.Unpack, op.Copy, op.Fill, op.Convert, op.RotaryAngles, op.Resolve, op.Advance, op.Accept, op.DraftRows, op.Lookup:
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
