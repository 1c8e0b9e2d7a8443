package engine

import (
	"context"
	"slices"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
)

// task is a request on its way through the engine. After Submit only the engine's goroutine touches it, but for ctx.
type task struct {
	request  Request
	sequence sched.Sequence
	edits    *sample.Edits
	ctx      context.Context
	stop     func() bool // ends the watch over ctx

	events  chan Event
	behind  []Event               // events that events has no room for yet, at most MaxTokens+1
	scored  []sample.TokenLogProb // of the prompt, so far
	started bool                  // its first event is on its way

	submitted, launched, first time.Time // launched is of the first step that it is in, first when it had a token
}

// eventRoom is how many events wait for a consumer before they cost the engine more than a send.
const eventRoom = 64

func newTask(ctx context.Context, r Request) *task {
	r.Prompt, r.End = slices.Clone(r.Prompt), slices.Clone(r.End) // the caller may change its own
	t := &task{request: r, ctx: ctx, submitted: time.Now(), events: make(chan Event, min(eventRoom, r.MaxTokens+1))}
	t.sequence = sched.Sequence{Tokens: r.Prompt, MaxTokens: r.MaxTokens, End: r.End, Score: r.PromptLogProbs, Waits: r.LogProbs >= 0, Salt: r.CacheSalt}
	var hold []int32
	if r.MinTokens > 0 {
		hold = r.End
	}
	t.edits = sample.NewEdits(r.Sampling, r.Prompt, hold)
	return t
}

// send hands an event over without waiting.
func (t *task) send(e Event) {
	for len(t.behind) > 0 {
		select {
		case t.events <- t.behind[0]:
			t.behind = t.behind[1:]
			continue
		default:
		}
		t.behind = append(t.behind, e)
		return
	}
	select {
	case t.events <- e:
	default:
		t.behind = append(t.behind, e)
	}
}

// finish closes the channel once all was taken. Where the consumer is behind, a goroutine waits for it: until it has
// read everything, its context ends, or closing does.
func (t *task) finish(closing <-chan struct{}) {
	t.stop()
	if len(t.behind) == 0 {
		close(t.events)
		return
	}
	go func() {
		defer close(t.events)
		for _, e := range t.behind {
			select {
			case t.events <- e:
			case <-t.ctx.Done():
				return
			case <-closing:
				return
			}
		}
	}()
}

// late tells whether a step that samples for the task needs late inputs.
func (t *task) late() bool { return t.edits != nil }

// wantsLogits tells whether the host needs the logits of a chunk's outputs.
func (t *task) wantsLogits(c sched.Chunk) bool {
	return scoredRows(c) > 0 || c.Sample && t.request.LogProbs >= 0
}
