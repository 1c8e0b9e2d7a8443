package table

import (
	"bytes"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
)

func TestFit(t *testing.T) {
	cases := []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"two words", 5, "two\nwords"},
		{"a b c d", 3, "a b\nc d"},
		{"model.layers.0.mlp.up_proj.weight", 15, "model.l….weight"},
		{"see model.layers.0.weight", 9, "see\nmode…ight"},
		{"kernels/h200/base/bf16/kernels.toml:33", 20, "kernels/h200/base/\nbf16/kernels.toml:33"},
		{"in a/bc", 4, "in\na/bc"},
		{"one\ntwo three", 5, "one\ntwo\nthree"},
		{"漢字漢字漢字", 7, "漢…漢字"},
		{"漢字漢字漢字", 6, "漢…字"},
		{"é́é́é́", 2, "é́…"},
		{"a\x1b[31mb", 20, "a�[31mb"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"", 3, ""},
	}
	for _, c := range cases {
		if got := Fit(c.text, c.width); got != c.want {
			t.Errorf("%q in %d columns: got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// A table fits whatever its cells hold, and numbers stay whole while text can give way.
func TestTableFits(t *testing.T) {
	long := strings.Repeat("name_of_a_kernel", 20)
	cases := []struct {
		what   string
		header []string
		row    []string
		keeps  string
	}{
		{"short", []string{"a", "\tb"}, []string{"x", "1"}, "x"},
		{"one word", []string{"a", "\tb"}, []string{long, "12345"}, "12345"},
		{"sentences", []string{"a", "b"}, []string{strings.Repeat("some words ", 50), strings.Repeat("others ", 50)}, "some"},
		{"wide characters", []string{"a", "b"}, []string{strings.Repeat("漢", 200), strings.Repeat("字", 90)}, "漢"},
		{"numbers and text", []string{"op", "case", "\tµs", "\tµs", "\tµs", "\tµs", "\tµs", "\tµs"},
			[]string{long, long, "1234567.8", "1234567.8", "1234567.8", "1234567.8", "1234567.8", "1234567.8"}, "1234567.8"},
		{"long headings", []string{"name", "\tbytes of all arguments", "\tmore of them than fits", "\tregisters of one thread", "\tbytes on its own stack"},
			[]string{"a_name_of_22_characters", "1", "2", "3", "4"}, "a_name_of_22_characters"},
		{"many columns", strings.Split(strings.Repeat("heading of it,", 24)+"last", ","), strings.Split(strings.Repeat(long+",", 24)+"x", ","), "x"},
	}
	for _, c := range cases {
		table := New(c.header...)
		table.Row(c.row...)
		var out bytes.Buffer
		if err := table.Print(&out); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		for line := range strings.Lines(out.String()) {
			if got := displaywidth.String(strings.TrimRight(line, "\n")); got > Columns {
				t.Errorf("%s: a line of %d columns, want at most %d: %q", c.what, got, Columns, line)
			}
		}
		if !strings.Contains(out.String(), c.keeps) {
			t.Errorf("%s: got %s without %q", c.what, out.String(), c.keeps)
		}
	}
}
