package optest

import (
	"fmt"
	"strings"
)

// Status is how a case ended.
type Status string

// A case is skipped where the set has no kernels for its weights.
const (
	Pass Status = "PASS"
	Fail Status = "FAIL"
	Skip Status = "SKIP"
)

// Result is what became of one case.
type Result struct {
	Op        string
	Case      string
	Status    Status
	Error     float64 // relative for numbers; how many elements differ for bits
	Tolerance float64
	Message   string // what is wrong, or the worst element
}

// String is a line with the largest error, what is allowed, and what is wrong where the case failed.
func (r Result) String() string {
	line := fmt.Sprintf("%s %s %s %.2g %.2g", r.Status, r.Op, r.Case, r.Error, r.Tolerance)
	if r.Status != Pass {
		line += ": " + r.Message
	}
	return line
}

// Report is what became of all cases.
type Report struct {
	Target  string
	Results []Result
}

// Count is how many cases ended so.
func (r Report) Count(s Status) int {
	n := 0
	for _, result := range r.Results {
		if result.Status == s {
			n++
		}
	}
	return n
}

// String is a line for each case.
func (r Report) String() string {
	var b strings.Builder
	for _, result := range r.Results {
		fmt.Fprintln(&b, result)
	}
	return b.String()
}
