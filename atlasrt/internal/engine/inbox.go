package engine

import (
	"iter"
	"sync"
)

// Inbox is where the events of all requests of one Submit arrive, in one queue.
//
// The engine never waits for its reader: what was not read stays, and that is bounded by what the requests may generate. A
// reader that goes away has nothing to do but to end the context that it gave to Submit. One goroutine may read.
type Inbox struct {
	cancel func(request int)
	ready  chan struct{}

	mutex  sync.Mutex
	events []Event // that came after batch
	left   int     // requests whose last event has not come

	// The reader's own.
	batch  []Event
	next   int // of batch
	unread int // requests whose last event was not read
}

// NewInbox makes the inbox of so many requests. cancel ends one of them early. Only engines make inboxes.
func NewInbox(requests int, cancel func(request int)) *Inbox {
	return &Inbox{cancel: cancel, ready: make(chan struct{}, 1), left: requests, unread: requests}
}

// Put adds an event, without waiting, and tells whether it was the last one of the last request. Only engines put.
func (b *Inbox) Put(e Event) (last bool) {
	b.mutex.Lock()
	b.events = append(b.events, e)
	first := len(b.events) == 1
	if e.Finish != "" {
		b.left--
	}
	last = b.left == 0
	b.mutex.Unlock()
	if first { // else the reader has been told
		select {
		case b.ready <- struct{}{}:
		default:
		}
	}
	return last
}

// Ready receives when events have come since Next had none. It may also receive where none have.
func (b *Inbox) Ready() <-chan struct{} { return b.ready }

// Next gives the oldest event that was not read; false where none waits. Events of one request come in order, and the last one
// has Finish set.
func (b *Inbox) Next() (Event, bool) {
	if b.next == len(b.batch) {
		clear(b.batch) // its events may hold much
		b.next = 0
		b.mutex.Lock()
		b.batch, b.events = b.events, b.batch[:0]
		b.mutex.Unlock()
		if len(b.batch) == 0 {
			return Event{}, false
		}
	}
	e := b.batch[b.next]
	b.next++
	if e.Finish != "" {
		b.unread--
	}
	return e, true
}

// Cancel ends a request early, by its place in the Submit; its last event comes soon after. It does nothing to one that has ended.
func (b *Inbox) Cancel(request int) { b.cancel(request) }

// All gives the events that were not read, and those to come, until all requests have ended. It waits for them.
func (b *Inbox) All() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for b.unread > 0 {
			e, ok := b.Next()
			if !ok {
				<-b.ready
			} else if !yield(e) {
				return
			}
		}
	}
}
