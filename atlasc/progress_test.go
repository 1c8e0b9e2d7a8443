package main

import (
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
)

func TestProgress(t *testing.T) {
	type step struct {
		seconds    int
		done, kept int
	}
	cases := []struct {
		what     string
		terminal bool
		steps    []step
		want     string
	}{
		{"a terminal", true, []step{{2, 1, 0}, {4, 2, 0}},
			"\r\033[Kabacus: compiled 1 of 10, about 18s left\r\033[Kabacus: compiled 2 of 10, about 16s left\r\033[K"},
		{"what was kept took no time", true, []step{{0, 5, 5}, {3, 6, 5}}, "\r\033[Kabacus: compiled 5 of 10\r\033[Kabacus: compiled 6 of 10, about 12s left\r\033[K"},
		{"a file", false, []step{{1, 1, 0}, {9, 2, 0}, {11, 3, 0}, {12, 4, 0}, {21, 6, 0}},
			"abacus: compiled 3 of 10, about 26s left\nabacus: compiled 6 of 10, about 14s left\n"},
		{"a build that is soon done", false, []step{{1, 5, 0}, {2, 10, 0}}, ""},
		{"the end", false, []step{{30, 10, 0}}, ""},
	}
	for _, c := range cases {
		var out strings.Builder
		clock := time.Unix(0, 0)
		p := newProgress(&out, c.terminal, "abacus", func() time.Time { return clock })
		for _, s := range c.steps {
			clock = time.Unix(int64(s.seconds), 0)
			p.Compiled(toolchain.Progress{Done: s.done, Kept: s.kept, Total: 10})
		}
		p.End()
		if out.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.what, out.String(), c.want)
		}
	}
}
