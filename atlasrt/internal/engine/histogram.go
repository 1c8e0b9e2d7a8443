package engine

import (
	"math"
	"sync/atomic"
	"time"
)

// Bounds are the upper ends of a Histogram's buckets, in seconds: from host work between steps to requests that wait for minutes.
var Bounds = [...]float64{10e-6, 20e-6, 30e-6, 50e-6, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 60, 120, 300}

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

// times is a Histogram that one goroutine adds to while others read it.
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
