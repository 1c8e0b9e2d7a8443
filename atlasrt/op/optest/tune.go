package optest

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Trial is a shape and the kernels that may serve it. `atlasc tune` makes it, which has evaluated what a manifest says of
// launches for this shape; the first candidate is what the set launches today.
type Trial struct {
	Shape      Shape
	Candidates []Candidate
}

// Candidate is a kernel of a manifest, ready to be launched whatever its condition says.
type Candidate struct {
	Kernel   string
	Scratch  int64 // bytes; negative: none
	Launches []TrialLaunch
}

// TrialLaunch is one launch of a candidate.
type TrialLaunch struct {
	Entry   string // point of the image
	Grid    [3]uint32
	Padding int64 // bytes before the descriptors of tiles
	Tiles   []TrialTile
}

// TrialTile is a matrix that the copy engine reads.
type TrialTile struct {
	Field             string
	Rows, Cols, Pitch int64
	Box               [2]uint32
}

// Tried is what became of a trial.
type Tried struct {
	Shape   Shape
	Bytes   int64
	Ceiling int64  // bytes per second
	Message string `json:",omitempty"` // why nothing was measured
	Results []Measured
}

// Measured is how a candidate did.
type Measured struct {
	Kernel  string
	Same    bool          // it gave the bits that the set gives
	Time    time.Duration // the least of all rounds
	Noise   float64       // the slowest round by the fastest, at least 1
	Message string        `json:",omitempty"`
}

// tuneRounds is how often the candidates of a trial take turns: what else the machine does meets all of them.
const tuneRounds = 3

// Tune measures trials. points are the image's entry points by name.
func Tune(t Target, trials []Trial, points map[string]op.Kernel, seed uint64) ([]Tried, error) {
	j, err := newJudge(&t, Options{Seed: seed})
	if err != nil {
		return nil, err
	}
	defer j.close()
	b := newBencher(j)
	ceiling, _, err := b.ceiling()
	if err != nil {
		return nil, fmt.Errorf("measuring how fast %s reads: %w", t.Name, err)
	}
	var all []Tried
	for _, trial := range trials {
		tried := Tried{Shape: trial.Shape, Ceiling: ceiling}
		if err := b.try(trial, points, &tried); err != nil {
			tried.Message = err.Error()
		}
		all = append(all, tried)
	}
	return all, nil
}

// try measures one trial. A candidate that gives other bits than the set is not timed.
func (b *bencher) try(trial Trial, points map[string]op.Kernel, tried *Tried) error {
	c, err := shapedCase(trial.Shape)
	if err != nil {
		return err
	}
	s, err := b.stage(c)
	if err != nil {
		return err
	}
	defer b.Device.Free(s.base)
	tried.Bytes, _ = c.work(s.fields)
	if err := b.compare(trial, points, s, tried); err != nil {
		return err
	}
	slowest := make([]time.Duration, len(trial.Candidates))
	for range tuneRounds {
		for i, candidate := range trial.Candidates {
			m := &tried.Results[i]
			if !m.Same {
				continue
			}
			timing, err := b.clock.time(len(s.calls), func(n int) {
				force(b.target.stream, candidate, points, s.calls[n%len(s.calls)])
			})
			if err != nil {
				return err
			}
			if m.Time == 0 || timing.Min < m.Time {
				m.Time = timing.Min
			}
			slowest[i] = max(slowest[i], timing.Min)
		}
	}
	for i := range tried.Results {
		if m := &tried.Results[i]; m.Time > 0 {
			m.Noise = math.Max(1, slowest[i].Seconds()/m.Time.Seconds())
		}
	}
	return nil
}

// compare runs each candidate and the set over the same memory, and compares all of it: results, inputs and gaps.
func (b *bencher) compare(trial Trial, points map[string]op.Kernel, s *staged, tried *Tried) error {
	size := int64(0)
	for _, f := range s.fields {
		size = (size + f.bytes() + lineAlign - 1) / lineAlign * lineAlign
	}
	before, want, got := make([]byte, size), make([]byte, size), make([]byte, size)
	if err := b.Device.CopyOut(before, s.base); err != nil {
		return err
	}
	ops.Call(b.Set, b.target.stream, s.calls[0])
	if err := b.target.stream.Sync(); err != nil {
		return fmt.Errorf("the launch failed: %w", err)
	}
	if err := b.Device.CopyOut(want, s.base); err != nil {
		return err
	}
	for _, candidate := range trial.Candidates {
		m := Measured{Kernel: candidate.Kernel}
		if err := b.Device.CopyIn(s.base, before); err != nil {
			return err
		}
		force(b.target.stream, candidate, points, s.calls[0])
		if err := b.target.stream.Sync(); err != nil {
			return fmt.Errorf("kernel %s failed: %w", candidate.Kernel, err)
		}
		if err := b.Device.CopyOut(got, s.base); err != nil {
			return err
		}
		if m.Same = bytes.Equal(got, want); !m.Same {
			m.Message = "gives other bits"
		}
		tried.Results = append(tried.Results, m)
	}
	return b.Device.CopyIn(s.base, before)
}

// force queues a candidate's launches over an op's struct.
func force(q op.Stream, c Candidate, points map[string]op.Kernel, args any) {
	v := reflect.New(reflect.TypeOf(args)).Elem() // an addressable copy
	v.Set(reflect.ValueOf(args))
	block := bytes.Clone(unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size()))
	if c.Scratch >= 0 {
		at := q.Scratch(c.Scratch)
		block = append(block, unsafe.Slice((*byte)(unsafe.Pointer(&at)), unsafe.Sizeof(at))...)
	}
	for _, l := range c.Launches {
		k, ok := points[l.Entry]
		if !ok {
			q.Fail(fmt.Errorf("the image has no entry point %s (run atlasc build and make build)", l.Entry))
			return
		}
		if l.Grid[0] == 0 || l.Grid[1] == 0 || l.Grid[2] == 0 {
			continue
		}
		argument := block
		if len(l.Tiles) > 0 {
			argument = append(bytes.Clone(block), make([]byte, l.Padding)...)
			for _, t := range l.Tiles {
				m := q.TensorMap(op.Tile{Data: op.Ptr(v.FieldByName(t.Field).Uint()), Rows: t.Rows, Cols: t.Cols, Pitch: t.Pitch, BoxRows: t.Box[0], BoxCols: t.Box[1]})
				argument = append(argument, unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))...)
			}
		}
		copy(unsafe.Slice((*byte)(q.Args(uintptr(len(argument)))), len(argument)), argument)
		q.Launch(k, op.Grid{X: l.Grid[0], Y: l.Grid[1], Z: l.Grid[2]})
	}
}
