// Package bench keeps what `atlasrt ops bench` measured: saved runs, the noise between them, and comparisons.
//
// A time is the least that a run saw: other programs only ever add to it. Noise is how far the runs of one file lie
// apart, so that a comparison knows what this machine cannot tell.
package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"
)

// Timing is how long one call takes; zero where it was not measured.
type Timing struct{ Median, Min time.Duration }

// Result is one case of a report, as the runtime prints it.
type Result struct {
	Op, Case   string           // the operation, and the name of its case
	Args       map[string]int64 `json:",omitempty"` // integer fields of the op's struct
	Cold, Warm Timing           // with buffers that are not in a cache, and with buffers that are
	Bytes      int64            // that a call must move
	Flops      int64            // of its products; 0 where it has none
	Ceiling    int64            // bytes per second
	Message    string           // why there is no time
}

// Time is the least of the cold calls, or of the warm ones of a case that has no cold ones.
func (r *Result) Time() time.Duration {
	if r.Cold.Min > 0 {
		return r.Cold.Min
	}
	return r.Warm.Min
}

// BytesPerSecond is by Time; 0 where there is none.
func (r *Result) BytesPerSecond() float64 {
	if r.Time() <= 0 {
		return 0
	}
	return float64(r.Bytes) / r.Time().Seconds()
}

// Report is one run over one target.
type Report struct {
	Target  string   // "cpu-x86-64-v3 --exact"
	Ceiling int64    // bytes per second that a plain read reaches
	Method  string   // how the ceiling was measured
	Results []Result // in the order of the cases
}

// Run is the reports of one run of the runtime, one per target.
type Run []Report

// ReadRun reads what the runtime prints: a JSON value per target.
func ReadRun(r io.Reader) (Run, error) {
	var run Run
	for d := json.NewDecoder(r); ; {
		var report Report
		if err := d.Decode(&report); errors.Is(err, io.EOF) {
			return run, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what the runtime measured: %w", err)
		}
		run = append(run, report)
	}
}

// File is saved runs.
type File struct {
	Version int    // of the format
	Machine string // that they were measured on
	Runs    []Run  // in the order in which they were made
}

// version changes when old files can no longer be read.
const version = 1

// Read reads a saved file.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read saved measurements: %w", err)
	}
	f := &File{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%s holds no saved measurements (atlasc bench --save writes them): %w", path, err)
	}
	if f.Version != version || len(f.Runs) == 0 {
		return nil, fmt.Errorf("%s has version %d of the format and %d runs, want version %d and a run (measure again with atlasc bench --save)", path, f.Version, len(f.Runs), version)
	}
	return f, nil
}

// Write saves the file.
func (f *File) Write(path string) error {
	f.Version = version
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("save measurements: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("save measurements: %w", err)
	}
	return nil
}

// Case is one case over all runs of a file.
type Case struct {
	Target string  // as in Report
	Result         // of the run in which it was fastest
	Noise  float64 // the slowest run's time by the fastest's, at least 1
}

// key identifies a case in every file.
func (c *Case) key() [3]string { return [3]string{c.Target, c.Op, c.Case} }

// Cases lists the cases that were measured, in the order of the first run.
func (f *File) Cases() []Case {
	var cases []Case
	index := map[[3]string]int{}
	slowest := map[[3]string]time.Duration{}
	for _, run := range f.Runs {
		for _, report := range run {
			for _, r := range report.Results {
				if r.Time() <= 0 {
					continue
				}
				c := Case{Target: report.Target, Result: r, Noise: 1}
				i, seen := index[c.key()]
				if !seen {
					index[c.key()] = len(cases)
					cases = append(cases, c)
				} else if r.Time() < cases[i].Time() {
					cases[i].Result = r
				}
				slowest[c.key()] = max(slowest[c.key()], r.Time())
			}
		}
	}
	for i := range cases {
		cases[i].Noise = math.Max(1, slowest[cases[i].key()].Seconds()/cases[i].Time().Seconds())
	}
	return cases
}

// Ceiling is the highest bandwidth that any run of a target reached, in bytes per second; 0 where there is none.
func (f *File) Ceiling(target string) int64 {
	ceiling := int64(0)
	for _, run := range f.Runs {
		for _, report := range run {
			if report.Target == target {
				ceiling = max(ceiling, report.Ceiling)
			}
		}
	}
	return ceiling
}
