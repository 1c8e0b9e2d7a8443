package optest

import (
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/device"
)

// stopwatch measures launches. queue queues the i-th; each round of so many takes them all in turn.
type stopwatch interface {
	time(round int, queue func(i int)) (Timing, error)
	// calls is how many launches there may be in a round, and bytes about what their buffers may take.
	calls() int64
	bytes() int64
}

// How queued launches are timed: samples of several until both are reached.
const (
	fewestSamples = 5
	sampleTime    = 2 * time.Millisecond
	caseTime      = 200 * time.Millisecond
	mostQueued    = 1000 // in one sample: streams hold a limited number of launches
)

// queueing times launches from when the first is queued until the stream is idle.
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

// timing is of one launch.
func timing(times []time.Duration) Timing {
	slices.Sort(times)
	return Timing{Median: times[len(times)/2], Min: times[0]}
}

// How replayed launches are timed. A sample is by how much longer several replays take than one, so that what it costs to
// start and to wait is in none.
const (
	graphTime   = time.Millisecond // that one replay takes at least, unless that needs too many launches
	mostNodes   = 8192             // launches of a recorded step
	moreReplays = 3
	mostSamples = 9
	replayTime  = 30 * time.Millisecond // of all samples, once there are three

	// A GPU that has multiplied for long lowers its clock, so before launches that take as long as tires it rests, as
	// tools/peers/cuda_peers.py lets it: what is timed first, or after pauses, would else be a sixth faster.
	tires = 50 * time.Microsecond
	rest  = 300 * time.Millisecond
)

// replaying times launches of a recorded step, which cost what they cost in an engine's.
type replaying struct {
	device device.Grapher
	stream device.Stream
}

func (replaying) calls() int64 { return mostNodes }
func (replaying) bytes() int64 { return 8 << 30 }

func (w replaying) time(round int, queue func(i int)) (Timing, error) {
	queue(0) // what is loaded when it is first used
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

// record captures enough launches, in whole rounds, for a replay to be timed, and tells about how long one took.
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
