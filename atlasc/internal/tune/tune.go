// Package tune chooses kernels for shapes by what was measured, and writes the choice as a manifest.
//
// A choice differs from the set's own only where a kernel that gives the same bits was faster beyond noise, so that no
// measured shape loses. What is written follows from the measurements alone and is the same each time.
package tune

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Shape is the sizes and switches of a call, as the runtime records them. This type and those below, down to Measured, are read and
// written as JSON: package optest of the runtime has types of the same names and fields.
type Shape struct {
	Op    string           // the operation
	Args  map[string]int64 // integer fields of the op's struct
	Count int64            `json:",omitempty"` // how often it was called
}

// Shapes is a file of them.
type Shapes struct{ Shapes []Shape }

// Trial is what the runtime is to measure: the first candidate is the set's own choice.
type Trial struct {
	Shape      Shape       // of the call
	Candidates []Candidate // at least one
}

// Candidate is a kernel with its launches evaluated for a shape.
type Candidate struct {
	Kernel   string   // its name in the manifest
	Scratch  int64    // bytes; negative: none
	Launches []Launch // in order
}

// Launch is one of them.
type Launch struct {
	Entry   string    // entry point of the image
	Grid    [3]uint32 // blocks in x, y and z
	Padding int64     // bytes between the struct and the descriptors of tiles
	Tiles   []Tile    // descriptors that follow the struct
}

// Tile is a matrix that the copy engine reads.
type Tile struct {
	Field             string    // of the operation: the matrix's address
	Rows, Cols, Pitch int64     // in elements
	Box               [2]uint32 // rows and columns of a box
}

// Report is what the runtime measured.
type Report struct {
	Hardware string   // its name
	Features []string // of the processor, as the kernels' needs name them
	Tried    []Tried  // by trial
}

// Tried is one shape's measurements; those of the set's own choice come first.
type Tried struct {
	Shape   Shape      // of the trial
	Bytes   int64      // that a call must read and write at least
	Ceiling int64      // bytes per second that the device can move
	Message string     `json:",omitempty"` // why nothing was measured
	Results []Measured // by candidate
}

// Measured is how one kernel did.
type Measured struct {
	Kernel  string        // its name in the manifest
	Same    bool          // it gave the same bits as the set
	Time    time.Duration // the least of all rounds
	Noise   float64       // the slowest round by the fastest, at least 1
	Message string        `json:",omitempty"` // why it was not timed
}

// Chosen is what a shape gets.
type Chosen struct {
	Op      string           // the operation
	Args    map[string]int64 // sizes and switches of the shape
	Own     string           // the set's own choice
	Kernel  string           // that serves from now on; Own where none is faster
	Kernels []Timed          // all that were measured
}

// Timed is how fast a kernel was.
type Timed struct {
	Kernel       string  // its name in the manifest
	Microseconds float64 // of one call
	Percent      float64 // of what a plain read reaches
	Noise        float64 `json:",omitempty"` // the slowest round by the fastest
	Message      string  `json:",omitempty"` // why it was not measured
}

// Record is the measurements behind a table, kept beside it.
type Record struct {
	Machine string   // that they were made on
	Shapes  []Chosen // in the order of the table
}

// leastNoise is what rounds cannot tell even where they agree.
const leastNoise = 1.03

// Choose picks the kernel of a shape; false where nothing was measured.
func Choose(t Tried) (Chosen, bool) {
	if len(t.Results) == 0 || t.Results[0].Time <= 0 {
		return Chosen{}, false
	}
	own := t.Results[0]
	best := own
	out := Chosen{Op: t.Shape.Op, Args: t.Shape.Args, Own: own.Kernel}
	for _, m := range t.Results {
		x := Timed{Kernel: m.Kernel, Message: m.Message}
		if m.Same && m.Time > 0 {
			x.Microseconds = round(float64(m.Time.Nanoseconds())/1e3, 2)
			x.Percent = round(100*float64(t.Bytes)/m.Time.Seconds()/float64(max(t.Ceiling, 1)), 1)
			x.Noise = round(m.Noise, 3)
			noise := math.Max(leastNoise, math.Max(m.Noise, own.Noise))
			if m.Time < best.Time && m.Time.Seconds()*noise < own.Time.Seconds() {
				best = m
			}
		}
		out.Kernels = append(out.Kernels, x)
	}
	out.Kernel = best.Kernel
	return out, true
}

// Confirm takes a second report's measurements of the same shapes in: a kernel's time is the least of both, its noise
// what lies between all.
func (r *Report) Confirm(again *Report) {
	key := func(s Shape) string { return fmt.Sprint(s.Op, s.Args) } // maps print in the order of their keys
	second := map[string][]Measured{}
	for _, t := range again.Tried {
		second[key(t.Shape)] = t.Results
	}
	for _, t := range r.Tried {
		for i := range t.Results {
			m := &t.Results[i]
			for _, n := range second[key(t.Shape)] {
				if n.Kernel != m.Kernel || n.Time <= 0 || m.Time <= 0 {
					continue
				}
				slowest := math.Max(m.Time.Seconds()*m.Noise, n.Time.Seconds()*n.Noise)
				m.Time, m.Same = min(m.Time, n.Time), m.Same && n.Same
				m.Noise = slowest / m.Time.Seconds()
			}
		}
	}
}

func round(x float64, places int) float64 {
	p := math.Pow(10, float64(places))
	return math.Round(x*p) / p
}

// Sort puts shapes into the order in which they are written.
func (r *Record) Sort() {
	slices.SortFunc(r.Shapes, func(a, b Chosen) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Args["W.Rows"], b.Args["W.Rows"]), cmp.Compare(a.Args["W.Cols"], b.Args["W.Cols"]),
			cmp.Compare(a.Args["W.Count"], b.Args["W.Count"]), cmp.Compare(a.Args["TopK"], b.Args["TopK"]), cmp.Compare(a.Args["Rows"], b.Args["Rows"]))
	})
}

// JSON is the record as a file.
func (r *Record) JSON() ([]byte, error) {
	r.Sort()
	text, err := json.MarshalIndent(r, "", " ")
	return append(text, '\n'), err
}

// Read reads a record.
func Read(text []byte) (*Record, error) {
	r := &Record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read what tuning measured: %w", err)
	}
	for _, s := range r.Shapes {
		if s.Op == "" || s.Kernel == "" || s.Args["W.Rows"] <= 0 || s.Args["W.Cols"] <= 0 || s.Args["Rows"] <= 0 {
			return nil, fmt.Errorf("read what tuning measured: a shape of %q lacks its sizes or its kernel (tune again)", s.Op)
		}
	}
	return r, nil
}

// Entry is an entry of tuned.toml: a kernel for one matrix at some numbers of rows. Op is the operation and Kernel the manifest's entry
// that is copied; Name, When and Comment are the copy's name, condition and comment.
type Entry struct {
	Op, Kernel, Name, When, Comment string
}

// Entries is the table: one entry for all rows of a matrix that go to the same kernel.
func (r *Record) Entries() []Entry {
	r.Sort()
	var entries []Entry
	for i, s := range r.Shapes {
		same := func(t Chosen) bool { return sameEntry(s, t) }
		if s.Kernel == s.Own || slices.ContainsFunc(r.Shapes[:i], same) { // the first of them has made the entry
			continue
		}
		var rows []string
		for _, t := range r.Shapes[i:] {
			if same(t) {
				rows = append(rows, fmt.Sprintf("Rows == %d", t.Args["Rows"]))
			}
		}
		entries = append(entries, entryOf(s, rows))
	}
	return entries
}

// sameEntry tells whether two shapes differ in their rows only and go from one kernel to the same other.
func sameEntry(a, b Chosen) bool {
	for _, name := range []string{"W.Rows", "W.Cols", "W.Count", "TopK"} {
		if a.Args[name] != b.Args[name] {
			return false
		}
	}
	return a.Op == b.Op && a.Kernel == b.Kernel && b.Kernel != b.Own
}

// entryOf is the entry of a matrix at some rows.
func entryOf(s Chosen, rows []string) Entry {
	size := fmt.Sprintf("%dx%d", s.Args["W.Rows"], s.Args["W.Cols"])
	when := fmt.Sprintf("W.Rows == %d && W.Cols == %d", s.Args["W.Rows"], s.Args["W.Cols"])
	if n := s.Args["W.Count"]; n > 1 {
		size = strconv.FormatInt(n, 10) + "x" + size + "x" + strconv.FormatInt(s.Args["TopK"], 10)
		when += fmt.Sprintf(" && W.Count == %d && TopK == %d", n, s.Args["TopK"])
	}
	condition := strings.Join(rows, " || ")
	if len(rows) > 1 {
		condition = "(" + condition + ")"
	}
	return Entry{Op: s.Op, Kernel: s.Kernel, Name: "tuned_" + s.Kernel + "_" + size, When: when + " && " + condition, Comment: "instead of " + s.Own}
}
