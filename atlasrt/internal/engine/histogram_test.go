package engine

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestHistogram(t *testing.T) {
	var all times
	for _, d := range []time.Duration{-1, 0, 10 * time.Microsecond, 11 * time.Microsecond, time.Second, 3 * time.Hour} {
		all.add(d)
	}
	h := all.snapshot()
	want := Histogram{Sum: 10801.000021}
	want.Counts[0], want.Counts[1], want.Counts[slices.Index(Bounds[:], 1)], want.Counts[len(Bounds)] = 3, 1, 1, 1
	if h.Counts != want.Counts || math.Abs(h.Sum-want.Sum) > 1e-5 || h.Count() != 6 {
		t.Errorf("got %+v, %d in all; want %+v", h, h.Count(), want)
	}
	cases := []struct{ q, want float64 }{{0.01, 10e-6}, {0.5, 10e-6}, {0.6, 20e-6}, {0.8, 1}, {1, math.Inf(1)}}
	if more := h.Since(Histogram{Counts: h.Counts, Sum: 10800}); more.Count() != 0 || math.Abs(more.Sum-1.000021) > 1e-6 {
		t.Errorf("since all of them there are %d of %v seconds", more.Count(), more.Sum)
	}
	for _, c := range cases {
		if got := h.Quantile(c.q); got != c.want {
			t.Errorf("quantile %v: got %v, want %v", c.q, got, c.want)
		}
	}
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing: got %v, want 0", got)
	}
}

// What a request waits for is told apart: the queue, its prompt, its first token.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 0.002 // seconds
		f := newFixture(t, func(c *Config, f *fixture) {
			c.MaxSequences, c.ChunkTokens = 1, 4
			f.device.fault = func(int64) error { time.Sleep(2 * time.Millisecond); return nil }
		})
		first := f.submit(t, greedy([]int32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 6)) // 3 chunks, then 5 steps
		second := f.submit(t, greedy([]int32{1}, 2))
		read(first)
		read(second)
		s := f.Stats()
		for _, c := range []struct {
			what  string
			got   Histogram
			count uint64
			steps float64 // that all took
		}{
			{"queue", s.Queue, 2, 8},
			{"prefill", s.Prefill, 2, 4},
			{"first token", s.FirstToken, 2, 12},
			{"step", s.Step, s.Steps, 10},
			{"decode", s.Decode, 2, 6},
			{"inference", s.Inference, 2, 10},
			{"per token", s.PerToken, 2, 2},
			{"host", s.Host, s.DecodeSteps - 1, float64(s.DecodeSteps - 1)}, // before the first no tokens were read
		} {
			if want := c.steps * step; c.got.Count() != c.count || math.Abs(c.got.Sum-want) > 1e-9 {
				t.Errorf("%s: got %d of %v seconds in all, want %d of %v", c.what, c.got.Count(), c.got.Sum, c.count, want)
			}
		}
	})
}

// A request that is cancelled has its times as well; one without a token has none of decoding.
func TestTimesOfCancelledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(c *Config) { c.MaxSequences = 1 } // the second request waits
		s := cancelled(t, one, greedy([]int32{1}, 300), greedy([]int32{2}, 300))
		if s.Decode.Count() != 1 || s.Inference.Count() != 1 || s.Inference.Sum < s.Decode.Sum {
			t.Errorf("decode %+v, inference %+v, want one of each", s.Decode, s.Inference)
		}
	})
}

// Steps are counted by their rows.
func TestRows(t *testing.T) {
	f := newFixture(t, func(c *Config, _ *fixture) { c.ChunkTokens = 8 })
	read(f.submit(t, greedy(make([]int32, 17), 3))) // 8, 8, 1, and two that decode
	s := f.settle(t)
	if want := (RowHistogram{Counts: [len(RowBounds) + 1]uint64{3, 2}, Sum: 19}); s.Rows != want {
		t.Errorf("got %+v, want %+v", s.Rows, want)
	}
	var all sizes
	for _, rows := range []int{0, 1, 2, 16384, 16385} {
		all.add(rows)
	}
	if h := all.snapshot(); h.Counts[0] != 2 || h.Counts[1] != 1 || h.Counts[len(RowBounds)-1] != 1 || h.Counts[len(RowBounds)] != 1 || h.Sum != 32772 {
		t.Errorf("got %+v", h)
	}
}

// Recording a step is no work that every step needs. The first decode step follows a prompt, and is recorded as well.
func TestRecordingIsNotTheHostsTime(t *testing.T) {
	f := newFixture(t, func(c *Config, f *fixture) { c.Device, c.BlockSize = f.graphs, 2 })
	read(f.submit(t, greedy([]int32{1}, 30)))
	if s := f.Stats(); s.GraphCaptures != 2 || s.Host.Count() != s.DecodeSteps-2 {
		t.Errorf("the host's time was taken of %d of %d decode steps, of which %d were recorded", s.Host.Count(), s.DecodeSteps, s.GraphCaptures)
	}
}
