package engine

import (
	"sync/atomic"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// Stats is a snapshot of an engine. Counters only grow.
type Stats struct {
	Running, Waiting int // requests
	WaitingTokens    int // prompt tokens of waiting requests

	BlocksFree, BlocksUsed, BlocksCached, BlocksTotal int // free + used + cached = total
	SlotsFree, SlotsUsed, SlotsCached, SlotsTotal     int // the same of the slots of states; a model without has none

	BlockTokens int  // that a block holds
	Sharing     bool // prompts are looked up in the cache

	Steps, DecodeSteps, FailedSteps uint64 // all steps, those that only decoded, and those that failed
	PromptTokens, GeneratedTokens   uint64 // prompt tokens computed or found in the cache; tokens handed out
	PrefixQueries, PrefixHits       uint64 // prompt tokens looked up in the prefix cache, and taken from it
	PrefixRecomputed                uint64 // prompt tokens found in the prefix cache and computed nevertheless, for the state behind them is not kept
	Preemptions                     uint64 // times that a running request gave up what it held
	Finished, Cancelled, Failed     uint64 // requests

	GraphCaptures, GraphFallbacks   uint64 // steps recorded; times that recording failed and a weaker mode took over
	ReplayedFull, ReplayedPiecewise uint64 // steps; all others were launched kernel by kernel

	Drafting, Drafted, Accepted uint64            // times that a step computed drafts of a request, those drafts, and those that were right
	MostDrafts                  int               // of a request in a step
	AcceptedAt                  [MaxDrafts]uint64 // of these, by their place among the drafts of a step
	SavedSeconds                float64           // what drafts saved, estimated from steps without drafts; falls while drafts cost more than they give

	ForcedTokens, LateMasks uint64 // tokens that a grammar left no choice for, and that were not drawn; draws that were put off until their mask was made

	Queue      Histogram    // of requests, from Submit to the launch of the first step that they are in
	Prefill    Histogram    // of requests, from there to the first token
	FirstToken Histogram    // of requests, from Submit to the first token
	Decode     Histogram    // of requests that had a token and ended, from the first token to the end
	Inference  Histogram    // of these, from the launch of their first step to the end
	PerToken   Histogram    // of these, Decode by tokens behind the first, where there are any
	Step       Histogram    // of steps: from its launch, or the end of the one before, to its end
	Rows       RowHistogram // of steps
	Mask       Histogram    // of masks of grammars: what it took to make one
	Host       Histogram    // from having read a step's tokens to having launched the next, where both only decoded and the next was not recorded
}

// counters are what Stats reports of the loop.
type counters struct {
	steps, decodeSteps, failedSteps, generated atomic.Uint64
	queue, prefill, firstToken, stepTime, host times
	decode, inference, perToken, masks         times
	forced, lateMasks                          atomic.Uint64
	drafting, drafted, accepted                atomic.Uint64
	acceptedAt                                 [MaxDrafts]atomic.Uint64
	saved                                      atomic.Int64 // nanoseconds
	rows                                       sizes
}

func (c *counters) step(plan *sched.Plan, err error) {
	c.steps.Add(1)
	c.rows.add(plan.Rows)
	if plan.Decode() {
		c.decodeSteps.Add(1)
	}
	if err != nil {
		c.failedSteps.Add(1)
	}
}

// draft counts drafts that a step computed of a request, and how many of them were right.
func (c *counters) draft(drafts, right int) {
	c.drafting.Add(1)
	c.drafted.Add(uint64(drafts))
	c.accepted.Add(uint64(right))
	for i := range right {
		c.acceptedAt[i].Add(1)
	}
}

// end counts the times of a request that ended, if it ever had a token.
func (c *counters) end(t *task, now time.Time) {
	if !t.started {
		return
	}
	decode := now.Sub(t.first)
	c.decode.add(decode)
	c.inference.add(now.Sub(t.launched))
	if n := len(t.sequence.Generated()); n > 1 {
		c.perToken.add(decode / time.Duration(n-1))
	}
}

// Stats is a snapshot.
func (e *Engine) Stats() Stats {
	e.mutex.Lock()
	s := Stats{Running: e.scheduler.Running()}
	s.BlockTokens, s.Sharing = e.runner.config.BlockSize, !e.runner.config.NoPrefixSharing
	s.Waiting, s.WaitingTokens = e.scheduler.Waiting()
	blocks, slots := e.cache.Blocks(), e.cache.Slots()
	c := e.scheduler.Counts()
	e.mutex.Unlock()
	s.BlocksFree, s.BlocksUsed, s.BlocksCached, s.BlocksTotal = blocks.Free, blocks.Used, blocks.Cached, blocks.Total()
	s.SlotsFree, s.SlotsUsed, s.SlotsCached, s.SlotsTotal = slots.Free, slots.Used, slots.Cached, slots.Total()
	s.PromptTokens, s.PrefixQueries, s.PrefixHits, s.Preemptions = c.PromptTokens, c.PrefixQueries, c.PrefixHits, c.Preemptions
	s.PrefixRecomputed = c.PrefixRecomputed
	s.Finished, s.Cancelled, s.Failed = c.Finished, c.Cancelled, c.Failed
	s.Steps, s.DecodeSteps, s.FailedSteps = e.counts.steps.Load(), e.counts.decodeSteps.Load(), e.counts.failedSteps.Load()
	s.GeneratedTokens = e.counts.generated.Load()
	s.Mask, s.ForcedTokens, s.LateMasks = e.counts.masks.snapshot(), e.counts.forced.Load(), e.counts.lateMasks.Load()
	s.Drafting, s.Drafted, s.Accepted = e.counts.drafting.Load(), e.counts.drafted.Load(), e.counts.accepted.Load()
	s.MostDrafts = e.runner.config.Draws - 1
	for i := range s.AcceptedAt {
		s.AcceptedAt[i] = e.counts.acceptedAt[i].Load()
	}
	s.SavedSeconds = float64(e.counts.saved.Load()) / 1e9
	g := e.runner.recorder
	s.GraphCaptures, s.GraphFallbacks = g.captures.Load(), g.fallbacks.Load()
	s.ReplayedFull, s.ReplayedPiecewise = g.replayedFull.Load(), g.replayedParts.Load()
	s.Queue, s.Prefill, s.FirstToken = e.counts.queue.snapshot(), e.counts.prefill.snapshot(), e.counts.firstToken.snapshot()
	s.Step, s.Host, s.Rows = e.counts.stepTime.snapshot(), e.counts.host.snapshot(), e.counts.rows.snapshot()
	s.Decode, s.Inference, s.PerToken = e.counts.decode.snapshot(), e.counts.inference.snapshot(), e.counts.perToken.snapshot()
	return s
}
