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

// Trial is a shape and the kernels that can serve it. `atlasc tune` makes trials: it has evaluated the manifest's expressions for the
// shape, so that the kernels can be launched without their conditions. The first candidate is the one that the set launches.
type Trial struct {
	Shape      Shape       // of the call
	Candidates []Candidate // at least one
}

// Candidate is a kernel of a manifest with its launches for a shape.
type Candidate struct {
	Kernel   string        // its name in the manifest
	Scratch  int64         // bytes of scratch memory; negative: it takes none
	Launches []TrialLaunch // in order
}

// TrialLaunch is one launch of a candidate.
type TrialLaunch struct {
	Entry   string      // entry point of the image
	Grid    [3]uint32   // blocks in x, y and z; nothing is launched where one is 0
	Padding int64       // bytes between the struct and the descriptors of tiles
	Tiles   []TrialTile // descriptors that follow the struct in the argument block
}

// TrialTile is a matrix that the copy engine reads: see op.Tile.
type TrialTile struct {
	Field             string    // of the op's struct: the matrix's address
	Rows, Cols, Pitch int64     // in elements
	Box               [2]uint32 // rows and columns of a box
}

// Tried is the result of a trial.
type Tried struct {
	Shape   Shape      // of the trial
	Bytes   int64      // that a call must read and write at least
	Ceiling int64      // bytes per second that the device can move
	Message string     `json:",omitempty"` // why nothing was measured
	Results []Measured // by candidate
}

// Measured is the result of a candidate.
type Measured struct {
	Kernel  string        // its name in the manifest
	Same    bool          // it gave the same bits as the set; otherwise it was not timed
	Time    time.Duration // the least of all rounds
	Noise   float64       // time of the slowest round divided by that of the fastest, at least 1
	Message string        `json:",omitempty"` // why it was not timed
}

// tuneRounds is how often each candidate of a trial is timed. The candidates take turns, so that whatever else the machine does affects
// all of them.
const tuneRounds = 3

// Tune measures trials. points are the image's entry points by name. A trial that fails has a Message.
func Tune(t Target, trials []Trial, points map[string]op.Kernel, seed uint64) ([]Tried, error) {
	j, err := newJudge(&t, Options{Seed: seed}, nil)
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
