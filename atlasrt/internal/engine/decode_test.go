package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// still is a device, stream, model, sampler and recorded step that do nothing, in no time: what is measured with it is
// the engine alone.
type still struct {
	device.Stream
	next    op.Ptr
	counted []int32 // where counts are read to, if there are any: one draw counts of each chunk
}

func (s *still) Alloc(bytes int64) (op.Ptr, error) {
	s.next += op.Ptr(bytes+63) &^ 63
	return s.next, nil
}
func (s *still) Free(op.Ptr)                                         {}
func (s *still) CopyIn(op.Ptr, []byte) error                         { return nil }
func (s *still) CopyOut([]byte, op.Ptr) error                        { return nil }
func (s *still) Load([]byte) (device.Module, error)                  { return nil, errors.New("no kernels") }
func (s *still) Memory() (int64, int64)                              { return 0, 0 }
func (s *still) Close() error                                        { return nil }
func (s *still) Write(op.Ptr, []byte)                                {}
func (s *still) Read(to []byte, _ op.Ptr)                            { clear(to); pad(s.counted, 1) }
func (s *still) Sync() error                                         { return nil }
func (s *still) Sample(op.Stream, op.Sample)                         {}
func (s *still) Resolve(op.Stream, op.Resolve)                       {}
func (s *still) Advance(op.Stream, op.Advance)                       {}
func (s *still) Accept(op.Stream, op.Accept)                         {}
func (s *still) DraftRows(op.Stream, op.DraftRows)                   {}
func (s *still) NormPair(op.Stream, op.NormPair)                     {}
func (s *still) Lookup(op.Stream, op.Lookup)                         {}
func (s *still) Copy(op.Stream, op.Copy)                             {}
func (s *still) Send([]byte)                                         {}
func (s *still) Inputs() op.Ptr                                      { return 0 }
func (s *still) Results() op.Ptr                                     { return 0 }
func (s *still) Post(int) error                                      { return nil }
func (s *still) Wait() ([]byte, error)                               { pad(s.counted, 1); return nil, nil }
func (s *still) Forward(op.Stream, *model.Inputs)                    {}
func (s *still) Replay(device.Stream)                                {}
func (s *still) Capture(device.Stream, func()) (device.Graph, error) { return s, nil }
func (s *still) Layout() model.Layout {
	return model.Layout{Vocab: 150_000, MaxContext: 40_960, Drafts: 2}
}

// stillDrafter drafts nothing.
type stillDrafter struct{}

func (stillDrafter) Memory() []model.Memory           { return nil }
func (stillDrafter) Draft(op.Stream, *model.Drafting) {}

type stillDevice struct{ *still }

func (d stillDevice) Stream(int64) (device.Stream, error) { return d.still, nil }

func (d stillDevice) Mailbox(device.Stream, int, int) (device.Mailbox, error) { return d.still, nil }

// endless allows every token.
type endless struct{}

func (endless) Next(int32) (Grammar, bool) { return endless{}, true }
func (endless) Done() bool                 { return false }
func (endless) Only() (int32, bool)        { return 0, false }
func (endless) Mask(to []uint32) error {
	for i := range to {
		to[i] = math.MaxUint32
	}
	return nil
}

// decoding is an engine whose sequences have all begun to generate; step runs one step and takes its events. Where there are drafts, one draw of a
// step counts.
func decoding(t testing.TB, sequences, drafts int, graphs GraphMode, overlap bool, penalty float32, grammar Grammar) (e *Engine, step func()) {
	t.Helper()
	s := &still{}
	c := Config{Device: stillDevice{s}, Set: s, Model: s, KVType: op.BF16, Blocks: 200_000, Draws: 1 + drafts, Options: Options{Graphs: graphs, NoOverlap: !overlap}}
	if drafts > 0 {
		c.Drafter = stillDrafter{}
	}
	e, err := build(c)
	if err != nil {
		t.Fatal(err)
	}
	if drafts > 0 {
		s.counted = e.runner.results[e.runner.headWords()-e.runner.config.MaxSequences:][:e.runner.config.MaxSequences]
	}
	var inboxes []*Inbox
	for i := range sequences {
		r := greedy([]int32{int32(i), 2, 3}, 40_000)
		r.Sampling.FrequencyPenalty, r.Grammar = penalty, grammar
		events, err := e.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		inboxes = append(inboxes, events)
	}
	given := make([]int, sequences) // events, by sequence
	take := func() (n int) {
		for i, events := range inboxes {
			for _, ok := events.Next(); ok; _, ok = events.Next() {
				given[i]++
				n++
			}
		}
		return n
	}
	for slices.Min(given) < 3 { // masks may be late: what a sequence needs memory for has come about with its third token
		e.step()
		take()
	}
	step = func() {
		e.step()
		if n := take(); n != sequences && grammar == nil { // else a mask may have been late
			t.Fatalf("a step gave %d events, want %d", n, sequences)
		}
	}
	return e, step
}

func TestDecodeAllocatesNothing(t *testing.T) {
	for _, sequences := range []int{1, 7, 64} {
		for _, graphs := range []GraphMode{GraphsNone, GraphsFull, GraphsPiecewise} {
			for _, overlap := range []bool{false, true} {
				for _, asks := range []struct {
					drafts  int
					penalty float32
					grammar Grammar
					steps   int
				}{{0, 0, nil, 1000}, {0, 1, nil, 1000}, {0, 0, endless{}, 100}, {2, 0, nil, 1000}, {2, 1, nil, 1000}, {2, 0, endless{}, 100}} {
					t.Run(fmt.Sprintf("%d sequences, graphs %s, overlap %v, %+v", sequences, graphs, overlap, asks), func(t *testing.T) {
						_, step := decoding(t, sequences, asks.drafts, graphs, overlap, asks.penalty, asks.grammar)
						if got := testing.AllocsPerRun(asks.steps, step); got != 0 {
							t.Errorf("allocations per step: got %v, want 0", got)
						}
					})
				}
			}
		}
	}
}

// BenchmarkDecode reports the host's time from the tokens of one step to the launch of the next.
func BenchmarkDecode(b *testing.B) {
	for _, sequences := range []int{1, 8, 64} {
		for _, overlap := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d, overlap %v", sequences, overlap), func(b *testing.B) {
				e, step := decoding(b, sequences, 0, GraphsFullDecodeOnly, overlap, 0, nil)
				seconds, steps := 0.0, uint64(0)
				count := func() {
					s := e.Stats()
					seconds, steps = seconds+s.Host.Sum, steps+s.Host.Count()
				}
				for b.Loop() {
					if e.scheduler.Running() < sequences { // they are at their end
						b.StopTimer()
						count()
						e, step = decoding(b, sequences, 0, GraphsFullDecodeOnly, overlap, 0, nil)
						b.StartTimer()
					}
					step()
				}
				count()
				b.ReportMetric(seconds*1e9/float64(steps), "ns-to-launch/step")
			})
		}
	}
}

// BenchmarkLaunch fills the inputs of a decode step and queues it, replayed, on a device that does nothing.
func BenchmarkLaunch(b *testing.B) {
	for _, penalty := range []float32{0, 1} {
		for _, sequences := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%d, penalty %v", sequences, penalty), func(b *testing.B) {
				s := &still{}
				e, err := build(Config{Device: stillDevice{s}, Set: s, Model: s, KVType: op.BF16, Blocks: 200_000, MaxSequences: 256})
				if err != nil {
					b.Fatal(err)
				}
				for i := range sequences {
					prompt := make([]int32, 1000)
					prompt[0] = int32(i)
					r := greedy(prompt, 1000)
					r.Sampling.FrequencyPenalty = penalty
					if _, err := e.Submit(b.Context(), r); err != nil {
						b.Fatal(err)
					}
				}
				var f *flight
				for f == nil || f.plan.Draws < sequences || f.plan.Rows > sequences {
					e.step()
					f = &e.flights[(e.takeoff-1)%overlapping]
				}
				for number := 0; b.Loop(); number++ {
					if err := errors.Join(e.runner.launch(f.plan, f.tasks, number), e.runner.finish()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
