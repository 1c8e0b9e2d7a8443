// Package diag is how the compiler reports what is wrong with its input.
//
// Every finding has a position in a file that a user can edit; findings are collected, sorted and printed together,
// each as "file:line: what is wrong (what to do)".
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in an input file. Line counts from 1; 0 means the file as a whole. Set is where the parameters of the
// file's texts are set; "" where it has none.
type Pos struct {
	File string // relative to the repository's root
	Line int
	Set  string
}

// String writes file:line, or the file alone where no line is known.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Parameters says where they are set, to be put after a text; "" where there are none.
func (p Pos) Parameters() string {
	if p.Set == "" {
		return ""
	}
	return " [parameters of " + p.Set + "]"
}

// Compare orders positions by file and line.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Set, q.Set))
}

// Diagnostic is one finding. Hint says what to do and may be empty.
type Diagnostic struct {
	Pos  Pos    // where it is
	Msg  string // what is wrong
	Hint string
}

// String writes file:line: what is wrong (what to do).
func (d Diagnostic) String() string {
	s := d.Pos.String() + ": " + d.Msg
	if d.Hint != "" {
		s += " (" + d.Hint + ")"
	}
	return s + d.Pos.Parameters()
}

// List collects findings. Its zero value is ready to use.
type List []Diagnostic

// Add appends a finding whose message is format with args.
func (l *List) Add(p Pos, hint, format string, args ...any) {
	*l = append(*l, Diagnostic{p, fmt.Sprintf(format, args...), hint})
}

// Sorted returns the findings in the order of their positions, each once.
func (l List) Sorted() List {
	sorted := slices.Clone(l)
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Msg, b.Msg))
	})
	return slices.Compact(sorted)
}

// Err returns the list as an error, or nil where it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l.Sorted()
}

// Error prints one finding per line.
func (l List) Error() string {
	var b strings.Builder
	for i, d := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(d.String())
	}
	return b.String()
}
