package engine

import (
	"math"
	"sync/atomic"
	"time"
)

// Bounds are the upper ends of a Histogram's buckets, in seconds: from host work between steps to requests that take hours.
// vLLM's bounds for times of requests and tokens are among them.
var Bounds = [...]float64{10e-6, 20e-6, 30e-6, 50e-6, .0001, .0002, .0005, .001, .002, .005, .01, .02, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, .8,
	1, 1.5, 2, 2.5, 5, 7.5, 10, 15, 20, 30, 40, 50, 60, 80, 120, 240, 300, 480, 960, 1920, 7680}

// RowBounds are the upper ends of a RowHistogram's buckets, and vLLM's for tokens of a step.
var RowBounds = [...]int{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}

// RowHistogram counts steps by their rows.
type RowHistogram struct {
	Counts [len(RowBounds) + 1]uint64 // by bucket, the last one is what is more than all RowBounds
	Sum    uint64                     // rows
}

// Histogram counts durations.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64 // by bucket, the last one is what is longer than all Bounds
	Sum    float64                 // seconds
}

// Count is how many there were.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Since is what was added after an earlier snapshot.
func (h Histogram) Since(before Histogram) Histogram {
	for i := range h.Counts {
		h.Counts[i] -= before.Counts[i]
	}
	h.Sum -= before.Sum
	return h
}

// Quantile is a bound that no less than a share q of all are under; 0 where there are none.
func (h *Histogram) Quantile(q float64) float64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rest := uint64(math.Ceil(q * float64(n)))
	for i, c := range h.Counts[:len(Bounds)] {
		if rest <= c {
			return Bounds[i]
		}
		rest -= c
	}
	return math.Inf(1)
}

// times is a Histogram that goroutines add to while others read it.
type times struct {
	counts      [len(Bounds) + 1]atomic.Uint64
	nanoseconds atomic.Uint64
}

func (t *times) add(d time.Duration) {
	i, seconds := 0, d.Seconds()
	for i < len(Bounds) && seconds > Bounds[i] {
		i++
	}
	t.counts[i].Add(1)
	t.nanoseconds.Add(uint64(max(d, 0)))
}

func (t *times) snapshot() (h Histogram) {
	for i := range t.counts {
		h.Counts[i] = t.counts[i].Load()
	}
	h.Sum = float64(t.nanoseconds.Load()) / 1e9
	return h
}

// sizes is a RowHistogram that one goroutine adds to while others read it.
type sizes struct {
	counts [len(RowBounds) + 1]atomic.Uint64
	sum    atomic.Uint64
}

func (s *sizes) add(rows int) {
	i := 0
	for i < len(RowBounds) && rows > RowBounds[i] {
		i++
	}
	s.counts[i].Add(1)
	s.sum.Add(uint64(rows))
}

func (s *sizes) snapshot() (h RowHistogram) {
	for i := range s.counts {
		h.Counts[i] = s.counts[i].Load()
	}
	h.Sum = s.sum.Load()
	return h
}
