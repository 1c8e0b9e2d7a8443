package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	got, err := read("b (Go)\tversion\tb v1\t\nb (Go)\tchat\tx\tok\nb (Go)\tchat\ty\tFAIL\na\tcancel\tz\tok\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| b (Go) | 1 of 2 | ", "| a |  |  | ", "| 1 of 1 |  |  |\n", "| b (Go) | b v1 |\n"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("got %s, want %q in it", got, want)
		}
	}
	for _, wrong := range []string{"a\tchat\tok", "a\tno such feature\tx\tok", "a\tchat\tx\tperhaps"} {
		if got, err := read(wrong); err == nil {
			t.Errorf("%q: got %s, want an error", wrong, got)
		}
	}
}
