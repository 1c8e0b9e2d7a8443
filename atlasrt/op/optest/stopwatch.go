package optest

import (
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
)

// stopwatch measures how long a call takes.
type stopwatch interface {
	// time measures calls. queue queues call i, with i from 0 on; calls i and i+round use the same buffers.
	time(round int, queue func(i int)) (Timing, error)
	// calls is how many calls a round may have, and bytes about how many bytes their buffers may have.
	calls() int64
	bytes() int64
}

// How queued calls are timed. A sample is as many calls as take sampleTime; samples are taken until there are fewestSamples and they have
// taken caseTime.
const (
	fewestSamples = 5
	sampleTime    = 2 * time.Millisecond
	caseTime      = 200 * time.Millisecond
	mostQueued    = 1000 // calls of a sample: a stream holds a limited number of launches
)

// queueing times calls from when the first of a sample is queued until the stream is idle.
type queueing struct{ stream device.Stream }

func (queueing) calls() int64 { return 512 }
func (queueing) bytes() int64 { return coldBytes }

func (w queueing) time(_ int, queue func(i int)) (Timing, error) {
	next := 0
	sample := func(n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			queue(next)
			next++
		}
		err := w.stream.Sync()
		return time.Since(start), err
	}
	if _, err := sample(1); err != nil {
		return Timing{}, err
	}
	n := 1
	for {
		d, err := sample(n)
		if err != nil {
			return Timing{}, err
		}
		if d >= sampleTime || n == mostQueued {
			break
		}
		n = min(2*n, mostQueued)
	}
	var times []time.Duration
	for total := time.Duration(0); len(times) < fewestSamples || total < caseTime; {
		d, err := sample(n)
		if err != nil {
			return Timing{}, err
		}
		total += d
		times = append(times, d/time.Duration(n))
	}
	return timing(times), nil
}

// timing is the median and the least of samples, each of which is the time of one call.
func timing(times []time.Duration) Timing {
	slices.Sort(times)
	return Timing{Median: times[len(times)/2], Min: times[0]}
}

// How replayed calls are timed. A sample is the difference between several replays and one, so that it has no share of what starting and
// waiting cost.
const (
	graphTime   = time.Millisecond      // one replay takes at least so long, unless that needs more than mostNodes calls
	mostNodes   = 8192                  // calls of a recorded step
	moreReplays = 3                     // replays in the difference
	mostSamples = 9                     // samples of a case
	replayTime  = 30 * time.Millisecond // after three samples, no more are taken once all have taken so long

	// A GPU that has multiplied for a while lowers its clock. So it rests before calls of at least tires, and the peers that
	// tools/peers/cuda_peers.py times do the same. Otherwise a case that is timed first, or after a pause, would be a sixth faster.
	tires = 50 * time.Microsecond
	rest  = 300 * time.Millisecond
)

// replaying times the calls of a recorded step, whose launches cost what they cost in an engine.
type replaying struct {
	device device.Grapher
	stream device.Stream
}

func (replaying) calls() int64 { return mostNodes }
func (replaying) bytes() int64 { return 8 << 30 }

func (w replaying) time(round int, queue func(i int)) (Timing, error) {
	queue(0) // kernels are loaded at their first launch
	if err := w.stream.Sync(); err != nil {
		return Timing{}, err
	}
	g, nodes, took, err := w.record(round, queue)
	if err != nil {
		return Timing{}, err
	}
	if took >= tires {
		time.Sleep(rest)
	}
	var times []time.Duration
	for total := time.Duration(0); err == nil && (len(times) < 3 || len(times) < mostSamples && total < replayTime); {
		var one, more time.Duration
		if one, err = w.replay(g, 1); err == nil {
			more, err = w.replay(g, 1+moreReplays)
		}
		total += one + more
		times = append(times, max(more-one, 0)/time.Duration(moreReplays*nodes))
	}
	if failed := g.Close(); err == nil {
		err = failed
	}
	return timing(times), err
}

// record captures enough calls, in whole rounds, that a replay can be timed. took is about the time of one call.
func (w replaying) record(round int, queue func(i int)) (g device.Graph, nodes int, took time.Duration, err error) {
	for nodes = round; ; {
		g, err = w.device.Capture(w.stream, func() {
			for i := range nodes {
				queue(i)
			}
		})
		if err != nil {
			return nil, 0, 0, err
		}
		var d time.Duration
		for range 2 { // the first replay also brings the step to the device
			if d, err = w.replay(g, 1); err != nil {
				g.Close()
				return nil, 0, 0, err
			}
		}
		rounds := min(int(graphTime/max(d, 1))+1, 32, mostNodes/nodes)
		if d >= graphTime || rounds < 2 {
			return g, nodes, d / time.Duration(nodes), nil
		}
		if err := g.Close(); err != nil {
			return nil, 0, 0, err
		}
		nodes *= rounds
	}
}

// replay runs a step n times, and waits.
func (w replaying) replay(g device.Graph, n int) (time.Duration, error) {
	start := time.Now()
	for range n {
		g.Replay(w.stream)
	}
	err := w.stream.Sync()
	return time.Since(start), err
}
