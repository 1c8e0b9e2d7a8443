package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/internal/await"
)

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var release func()
		f := newFixture(t, func(c *Config, f *fixture) { release = hold(f) })
		defer release()
		events := f.submit(t, greedy([]int32{1}, 5))
		synctest.Wait() // in a step
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if err := f.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while a request runs: got %v, want %v", err, context.DeadlineExceeded)
		}
		if _, err := f.Submit(t.Context(), greedy([]int32{1}, 5)); !errors.Is(err, ErrDraining) {
			t.Errorf("Submit while draining: got %v, want %v", err, ErrDraining)
		}
		release()
		if err := f.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if got := read(events); got.finish != FinishLength || len(got.tokens) != 5 {
			t.Errorf("the request that ran: got %v %v", got.tokens, got.finish)
		}
	})
}

// What runs when a drain begins gives all its tokens, also where a step waits for late inputs.
func TestDrainLetsPenalisedRequestsEnd(t *testing.T) {
	f := newFixture(t, func(c *Config, f *fixture) { c.Device = f.ahead })
	r := greedy([]int32{1, 2}, 300)
	r.Sampling.FrequencyPenalty = 0.1
	events := f.submit(t, r)
	begun := first(events)
	if err := f.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := append([]int32{begun.Token}, read(events).tokens...), f.model.drawn(r); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Requests that have not begun are turned away when a drain begins, whatever runs still goes on, and gives its blocks back.
func TestDrainTurnsAwayWhatWaits(t *testing.T) {
	steps := make(chan struct{}) // each lets one step go on, its end lets all
	f := newFixture(t, func(c *Config, f *fixture) {
		c.MaxSequences = 2
		f.device.fault = func(int64) error { <-steps; return nil }
	})
	release := sync.OnceFunc(func() { close(steps) })
	defer release()
	running := []*Inbox{f.submit(t, greedy([]int32{1}, 50)), f.submit(t, greedy([]int32{2}, 50))}
	waiting := []*Inbox{f.submit(t, greedy([]int32{3}, 50)), f.submit(t, greedy([]int32{4}, 50))}
	await.Until(t, "two requests run", func() bool {
		select {
		case steps <- struct{}{}:
		default:
		}
		return f.Stats().Running == 2
	})
	drained := make(chan error, 1)
	go func() { drained <- f.Drain(t.Context()) }()
	await.Until(t, "the engine drains", func() bool {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		return f.draining
	})
	release()
	for i, events := range waiting {
		if got := read(events); got.finish != FinishError || !errors.Is(got.err, ErrDraining) || len(got.tokens) > 0 {
			t.Errorf("waiting request %d: got %v %q %v, want %v", i, got.tokens, got.finish, got.err, ErrDraining)
		}
	}
	for i, events := range running {
		if got := read(events); got.finish != FinishLength {
			t.Errorf("running request %d: got %q %v, want length", i, got.finish, got.err)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if s := f.Stats(); s.Finished != 2 || s.Cancelled != 2 || s.BlocksUsed != 0 || s.Waiting != 0 {
		t.Errorf("after the drain: %+v", s)
	}
}
