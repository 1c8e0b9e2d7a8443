package expr

import (
	"slices"
	"strings"
	"testing"
)

// What a way lets a size be.
func TestGoWithin(t *testing.T) {
	s := scope(t)
	cases := []struct {
		when, size string
		want       []string // one for each way
	}{
		{"true", "Rows*4", []string{"int64(a.Rows)*4"}},
		{"Rows <= 8", "Rows*Cols", []string{"min(int64(a.Rows), 8)*int64(a.Cols)"}},
		{"8 > Rows && Cols > 2", "Rows*Cols", []string{"min(int64(a.Rows), 8)*int64(a.Cols)"}},
		{"Rows <= kTile", "Rows*4", []string{"min(int64(a.Rows), 8)*4"}},
		{"Rows == 1", "Rows*4", []string{"min(int64(a.Rows), 1)*4"}},
		{"Rows > 8", "Rows*4", []string{"int64(a.Rows)*4"}},
		{"Rows*Cols <= 4096", "Rows*Cols*4", []string{"min(int64(a.Rows)*int64(a.Cols), 4096)*4"}},
		{"Rows <= 2*Cols || Rows*Cols < 64", "Rows*Cols", []string{"min(int64(a.Rows), 2*int64(a.Cols))*int64(a.Cols)", "min(int64(a.Rows)*int64(a.Cols), 64)"}},
		{"Rows <= Cols-Rows", "Rows*4", []string{"int64(a.Rows)*4"}},
		{"!(Rows > 8)", "Rows*4", []string{"int64(a.Rows)*4"}},
		{"Rows <= 8 && Rows > 8", "Rows*4", nil},
		{"W.Rows <= 8", "Rows*W.Rows", []string{"int64(a.Rows)*int64(a.W.Rows)"}},
	}
	for _, c := range cases {
		when, err := s.Bool(c.when)
		if err != nil {
			t.Fatal(err)
		}
		size, err := s.Int(c.size)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range Ways(nil, when) {
			got = append(got, strings.ReplaceAll(size.GoWithin(w), " * ", "*"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s where %s: got %q, want %q", c.size, c.when, got, c.want)
		}
	}
}

// What is left of the last condition behind the others.
func TestAfter(t *testing.T) {
	s := scope(t)
	cases := []struct {
		before []string
		last   string
		want   []string // fixed parts of the ways that are left
	}{
		{nil, "Rows <= 4 && Cols > 8", []string{"a.Cols > 8"}},
		{[]string{"Cols > 8"}, "Rows <= 4 && Cols > 8", nil},
		{[]string{"Rows <= 4"}, "Rows <= 4 && Cols > 8", nil},
		{[]string{"Rows <= 8"}, "Rows <= 4", []string{""}}, // numbers are not compared
		{[]string{"Cols > 8"}, "Rows <= 4", []string{"!(a.Cols > 8)"}},
		{[]string{"Cols == 8"}, "Rows <= 4", []string{""}}, // columns may differ
		{[]string{"!exact && Rows <= 4"}, "Rows <= 4", []string{"s.has.exact"}},
		{[]string{"!exact && Rows <= 4", "Rows <= 4 && exact"}, "Rows <= 4", nil},
		{[]string{"!exact"}, "!exact && Rows <= 4", nil},
		{[]string{"!exact"}, "exact && Rows <= 4", []string{"s.has.exact"}},
		{[]string{"vnni"}, "Rows <= 4", []string{""}}, // not among the switches
		{[]string{"Rows <= 2*Cols || Rows*Cols <= 4096", "Rows > 2*Cols && Rows*Cols > 4096"}, "true", nil},
		{[]string{"Rows <= 2*Cols", "Rows > 2*Cols && Rows*Cols > 4096"}, "true", []string{"true"}},
		{[]string{"Rows >= 9", "Rows < 9"}, "true", nil},
		{[]string{"Bias == 0"}, "Rows <= 4", []string{""}}, // which pointers are given is not known
		{[]string{"Bias == 0", "Bias != 0"}, "Rows <= 4", nil},
	}
	for _, c := range cases {
		var before []Way
		for _, text := range c.before {
			e, err := s.Bool(text)
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, Ways(nil, e)...)
		}
		e, err := s.Bool(c.last)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range Ways(nil, e) {
			if left, reached := w.After(before, []string{"exact"}); reached {
				got = append(got, strings.Join(left.Fixed, " && "))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s after %q: got %q, want %q", c.last, c.before, got, c.want)
		}
	}
}
