package main

import (
	"testing"
	"time"
)

func TestStepsLeft(t *testing.T) {
	cases := []struct {
		elapsed     time.Duration
		done, total int64
		want        string
	}{
		{time.Minute, 0, 4, ""},
		{time.Minute, 1, 4, ", about 3m0s left"},
		{10 * time.Second, 3, 4, ", about 3s left"},
		{time.Minute, 4, 4, ""},
		{time.Minute, 0, 0, ""},
	}
	for _, c := range cases {
		if got := stepsLeft(c.elapsed, c.done, c.total); got != c.want {
			t.Errorf("%d of %d after %v: got %q, want %q", c.done, c.total, c.elapsed, got, c.want)
		}
	}
}
