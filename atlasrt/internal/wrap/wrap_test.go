package wrap

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var cases = []struct {
	text  string
	width int
	want  string
}{
	{"one two three", 8, "one two\nthree"},
	{"one two three", 7, "one two\nthree"},
	{"one two three", 0, "one two three"},
	{"one\ntwo three\n", 5, "one\ntwo\nthree\n"},
	{"a  b", 10, "a  b"},
	{"trailing ", 20, "trailing "},
	{"abcdefghij kl", 4, "abcdefghij\nkl"},
	{"x abcdefghij kl", 4, "x\nabcdefghij\nkl"},
	{"  indented code", 20, "  indented code"},
	{"漢字漢字漢", 4, "漢字\n漢字\n漢"},
	{"ab漢字", 4, "ab漢\n字"},
	{"👩‍👩‍👧👩‍👩‍👧 x", 4, "👩‍👩‍👧👩‍👩‍👧\nx"},
	{"é́ é́", 2, "é́\né́"},
	{"a\tb c", 9, "a\tb\nc"},
	{"red \x1b[31m text\a", 40, "red ␛[31m text␇"},
	{"\r\u0085", 10, "␍�"},
	{"cut \xe2\x82", 10, "cut �"},
	{"", 5, ""},
}

// However text comes, it is broken at the same places.
func TestWriter(t *testing.T) {
	for _, c := range cases {
		for _, piece := range []int{1, 2, 3, 1000} {
			var out strings.Builder
			w := New(&out, c.width)
			for text := c.text; text != ""; {
				n := min(piece, len(text))
				if got, err := w.Write([]byte(text[:n])); got != n || err != nil {
					t.Fatalf("%q: wrote %d, %v", c.text, got, err)
				}
				text = text[n:]
			}
			if err := w.Flush(); err != nil || out.String() != c.want {
				t.Errorf("%q in %d columns, %d bytes at a time: got %q, %v, want %q", c.text, c.width, piece, out.String(), err, c.want)
			}
		}
	}
}

// Whatever comes, only spaces and line ends differ, and no line of narrow words is longer than the terminal.
func FuzzWriter(f *testing.F) {
	for _, c := range cases {
		f.Add(c.text, uint8(c.width))
	}
	f.Fuzz(func(t *testing.T, text string, width uint8) {
		var out strings.Builder
		w := New(&out, int(width))
		for i := range len(text) {
			if _, err := w.Write([]byte{text[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(text) {
			return
		}
		want := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return shown(r)
			}
			return r
		}, text)
		if got, want := strings.Join(strings.Fields(out.String()), ""), strings.Join(strings.Fields(want), ""); got != want {
			t.Errorf("%q in %d columns: got %q, want %q", text, width, got, want)
		}
		if strings.Trim(text, "abc \n") != "" {
			return
		}
		for line := range strings.SplitSeq(out.String(), "\n") {
			if width > 0 && len(strings.TrimRight(line, " ")) > int(width) && len(strings.Fields(line)) > 1 {
				t.Errorf("%q in %d columns: line %q is longer", text, width, line)
			}
		}
	})
}
