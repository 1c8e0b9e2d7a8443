// Package table prints tables that fit a terminal.
//
// A table is never wider than Columns. A cell that is too long takes several lines, broken at spaces and after slashes; a word that is
// longer than its column loses its middle.
package table

import (
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// Columns is how wide a table may be.
const Columns = 100

// padding is what tablewriter puts around a cell: a space on each side.
const padding = 2

// Table gathers rows. Make it with New.
type Table struct {
	rows  [][]string // the first is the header
	right []bool     // by column: aligned at the right, as numbers are
}

// New begins a table with these headers. A tab at the beginning of a header aligns its column at the right.
func New(header ...string) *Table {
	t := &Table{}
	names := make([]string, len(header))
	for i, name := range header {
		right := len(name) > 0 && name[0] == '\t'
		if right {
			name = name[1:]
		}
		names[i], t.right = name, append(t.right, right)
	}
	t.rows = [][]string{names}
	return t
}

// Row adds a row; cells that are left out are empty.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.right))
	copy(row, cells)
	t.rows = append(t.rows, row)
}

// Len is how many rows there are.
func (t *Table) Len() int { return len(t.rows) - 1 }

// Print writes the table.
func (t *Table) Print(w io.Writer) error {
	widths := t.widths()
	align := make(tw.Alignment, len(t.right))
	for i, right := range t.right {
		align[i] = tw.AlignLeft
		if right {
			align[i] = tw.AlignRight
		}
	}
	out := tablewriter.NewTable(w, tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithAlignment(align),
		tablewriter.WithRowAutoWrap(tw.WrapNone), tablewriter.WithHeaderAutoWrap(tw.WrapNone), tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithRendition(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		}))
	for i, row := range t.rows {
		cells := make([]any, len(row))
		for j, cell := range row {
			cells[j] = Fit(cell, widths[j])
		}
		if i == 0 {
			out.Header(cells...)
		} else if err := out.Append(cells...); err != nil {
			return err
		}
	}
	return out.Render()
}

// widths are the widths of the columns. Each is as wide as its longest cell, if all of them fit. Otherwise headers are broken at spaces,
// and then the widest column becomes narrower, again and again, until all fit.
func (t *Table) widths() []int {
	widths := make([]int, len(t.right))
	total := func() int {
		sum := 0
		for _, width := range widths {
			sum += width + padding
		}
		return sum
	}
	for j := range widths {
		for _, row := range t.rows {
			widths[j] = max(widths[j], longestLine(row[j]))
		}
	}
	if total() <= Columns {
		return widths
	}
	for j := range widths {
		widths[j] = longestLine(strings.ReplaceAll(t.rows[0][j], " ", "\n"))
		for _, row := range t.rows[1:] {
			widths[j] = max(widths[j], longestLine(row[j]))
		}
	}
	for range total() - Columns {
		if j := t.widest(widths); widths[j] > 1 {
			widths[j]--
		}
	}
	return widths
}

// widest is the column that becomes narrower next: the widest of texts, since a number without its middle is of no use. Once texts are
// narrow, numbers count as well.
func (t *Table) widest(widths []int) int {
	best := 0
	rank := func(j int) int {
		if t.right[j] || widths[j] <= narrow {
			return widths[j]
		}
		return widths[j] + 1<<20
	}
	for j := range widths {
		if rank(j) > rank(best) {
			best = j
		}
	}
	return best
}

// narrow is the width at which columns of text count as narrow, in columns of the terminal.
const narrow = 12

func longestLine(cell string) int {
	longest, width := 0, 0
	for graphemes := displaywidth.StringGraphemes(cell); graphemes.Next(); {
		if graphemes.Value() == "\n" {
			width = 0
			continue
		}
		width += graphemes.Width()
		longest = max(longest, width)
	}
	return longest
}
