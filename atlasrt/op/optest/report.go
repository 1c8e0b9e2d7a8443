package optest

import (
	"fmt"
	"strings"
)

// Status is how a case ended.
type Status string

// How a case ended. It is skipped where the set has no kernels for its weights, or no fused kernel for the call.
const (
	Pass Status = "PASS"
	Fail Status = "FAIL"
	Skip Status = "SKIP"
)

// Result is the result of one case.
type Result struct {
	Op        string  // the operation
	Case      string  // its name
	Status    Status  // how it ended
	Error     float64 // the relative error of a row, as compare measures it; where bits are compared, how many elements differ
	Tolerance float64 // what Error may be; 0: bits are compared
	Message   string  // what is wrong, or the element with the largest error
}

// String is a line with the largest error, what is allowed, and what is wrong where the case failed.
func (r Result) String() string {
	line := fmt.Sprintf("%s %s %s %.2g %.2g", r.Status, r.Op, r.Case, r.Error, r.Tolerance)
	if r.Status != Pass {
		line += ": " + r.Message
	}
	return line
}

// Report is the results of all cases.
type Report struct {
	Target  string   // the target's name
	Results []Result // in the order of the cases
}

// Count is how many cases ended with a status.
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
