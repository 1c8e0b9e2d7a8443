package engine

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/device"
)

// GraphMode says which steps are recorded once and replayed, instead of being launched kernel by kernel.
//
// Kernels read lengths, tables and slots from memory, so that a whole step can be replayed wherever its sizes repeat: those
// of decode steps, rounded up, nearly always do, those of steps with prompts seldom. Piecewise replay records what lies
// between the attentions, which depends on the number of rows and outputs alone, and launches the attentions anew: it
// serves steps with prompts, whatever sequences they are of.
type GraphMode string

// Modes. Empty is GraphsFullDecodeOnly.
const (
	GraphsNone             GraphMode = "none"
	GraphsPiecewise        GraphMode = "piecewise"
	GraphsFull             GraphMode = "full"
	GraphsFullDecodeOnly   GraphMode = "full_decode_only"
	GraphsFullAndPiecewise GraphMode = "full_and_piecewise"
)

// Recording is how much of a step is replayed; a greater one is more.
type Recording int

// Recordings.
const (
	Eager Recording = iota
	Piecewise
	Full
)

// String is the name that logs and flags use.
func (r Recording) String() string { return [...]string{"eager", "piecewise", "full"}[r] }

// Recordings is how decode steps and all others are run.
func (m GraphMode) Recordings() (decode, mixed Recording, err error) {
	switch m {
	case GraphsNone:
		return Eager, Eager, nil
	case GraphsPiecewise:
		return Piecewise, Piecewise, nil
	case GraphsFull:
		return Full, Full, nil
	case GraphsFullDecodeOnly, "":
		return Full, Eager, nil
	case GraphsFullAndPiecewise:
		return Full, Piecewise, nil
	}
	modes := []string{string(GraphsNone), string(GraphsPiecewise), string(GraphsFull), string(GraphsFullDecodeOnly), string(GraphsFullAndPiecewise)}
	return 0, 0, fmt.Errorf("there is no graph mode %q (set --graph-mode to one of %s)", m, strings.Join(modes, ", "))
}

// Bounds of what is kept: steps with prompts come in many sizes.
const (
	mostMixed = 128  // steps with prompts that are recorded, each size for two mailboxes
	mostSeen  = 4096 // sizes that are remembered before they are seen again
)

// graphKey is every size that the kernels of a recorded step were launched with, and its mailbox; of one in pieces only
// rows and outputs.
type graphKey struct {
	recording                                                     Recording
	rows, seqs, outputs, drawing, samples, drafts, maxBlocks, box int
	late                                                          bool // it ends before sampling, which reads late inputs
}

func (s shape) key() graphKey {
	if s.recording == Piecewise {
		return graphKey{recording: Piecewise, rows: s.rows, outputs: s.outputs}
	}
	return graphKey{Full, s.rows, s.seqs, s.outputs, s.drawing, s.samples, s.drafts, s.maxBlocks, s.box, s.late}
}

// recorder keeps recorded steps.
type recorder struct {
	device        device.Grapher // nil where decode and mixed are Eager
	decode, mixed Recording      // weaker than asked for once recording has failed
	log           *slog.Logger

	graphs     map[graphKey][]device.Graph // one, or the pieces of one
	seen       map[graphKey]bool           // steps with prompts that came once
	mixedSizes int

	captures, fallbacks         atomic.Uint64
	replayedFull, replayedParts atomic.Uint64
}

// newRecorder makes the recorder of a complete config.
func newRecorder(c Config) *recorder {
	r := &recorder{log: c.Log}
	d, ok := c.Device.(device.Grapher)
	if decode, mixed, err := c.Graphs.Recordings(); ok && err == nil {
		r.device, r.decode, r.mixed = d, decode, mixed
	}
	r.graphs, r.seen = make(map[graphKey][]device.Graph), make(map[graphKey]bool)
	return r
}

// find returns the graphs of a step, and whether they should be recorded now. Decode steps are recorded when their sizes
// are new, others when they come a second time, each for its mailbox.
func (r *recorder) find(s shape) (graphs []device.Graph, record bool) {
	key := s.key()
	if graphs, ok := r.graphs[key]; ok {
		return graphs, false
	}
	if s.decode {
		return nil, true
	}
	if r.mixedSizes == mostMixed {
		return nil, false
	}
	if r.seen[key] {
		delete(r.seen, key)
		r.mixedSizes++
		return nil, true
	}
	if len(r.seen) == mostSeen {
		clear(r.seen)
	}
	r.seen[key] = true
	return nil, false
}

// keep takes a step that was recorded.
func (r *recorder) keep(s shape, graphs []device.Graph) {
	r.graphs[s.key()] = graphs
	r.captures.Add(1)
}

// weaken makes steps of this kind be recorded less, after recording one has failed.
func (r *recorder) weaken(s shape, err error) {
	kind, name := &r.mixed, "with prompts"
	if s.decode {
		kind, name = &r.decode, "that only decode"
	}
	*kind = s.recording - 1
	r.fallbacks.Add(1)
	r.log.Warn("a step could not be recorded: steps of its kind are run another way from now on",
		"steps", name, "rows", s.rows, "recording", s.recording.String(), "now", kind.String(), "error", err)
}

// forget gives the graphs back; steps are recorded anew when they come.
func (r *recorder) forget() (errs []error) {
	for _, graphs := range r.graphs {
		errs = append(errs, closeAll(graphs)...)
	}
	clear(r.graphs)
	clear(r.seen)
	r.mixedSizes = 0
	return errs
}

func closeAll(graphs []device.Graph) (errs []error) {
	for _, g := range graphs {
		errs = append(errs, g.Close())
	}
	return errs
}

// decodeSizes are the numbers of sequences that decode steps are rounded up to, in order: those that were asked for, or else
// every one that bucketRows gives.
func decodeSizes(c Config) []int {
	sizes := slices.Clone(c.GraphSizes)
	if len(sizes) == 0 {
		for n := 1; n <= c.MaxSequences; n++ {
			sizes = append(sizes, bucketRows(n, c.MaxSequences))
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}
