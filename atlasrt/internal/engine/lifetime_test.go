package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/internal/await"
)

// hold makes the first step wait until release is called.
func hold(f *fixture) (release func()) { return holdFrom(f, 1) }

// holdFrom makes a step wait until release is called; those before it run freely.
func holdFrom(f *fixture, step int64) (release func()) {
	gate := make(chan struct{})
	f.device.fault = func(n int64) error {
		if n >= step {
			<-gate
		}
		return nil
	}
	return sync.OnceFunc(func() { close(gate) })
}

func TestQueueIsBounded(t *testing.T) {
	var release func()
	f := newFixture(t, func(c *Config, f *fixture) {
		c.MaxSequences, c.MaxWaiting, c.MaxWaitingTokens = 1, 3, 50
		release = hold(f)
	})
	defer release()
	inboxes := []*Inbox{f.submit(t, greedy([]int32{1}, 2))}
	await.Until(t, "the request runs", func() bool { return f.Stats().Running > 0 })
	inboxes = append(inboxes, f.submit(t, greedy(make([]int32, 30), 2)))
	var full *QueueFull
	if _, err := f.Submit(t.Context(), greedy(make([]int32, 21), 2)); !errors.As(err, &full) || *full != (QueueFull{Requests: 2, RequestLimit: 3, Tokens: 51, TokenLimit: 50}) {
		t.Errorf("too many tokens: got %v", err)
	}
	inboxes = append(inboxes, f.submit(t, greedy([]int32{2}, 2)), f.submit(t, greedy([]int32{3}, 2)))
	if _, err := f.Submit(t.Context(), greedy([]int32{4}, 2)); !errors.As(err, &full) || *full != (QueueFull{Requests: 4, RequestLimit: 3, Tokens: 33, TokenLimit: 50}) {
		t.Errorf("too many requests: got %v", err)
	}
	release()
	for i, events := range inboxes {
		if got := read(events); got.finish != FinishLength || got.err != nil {
			t.Errorf("request %d: got %v %v, want length", i, got.finish, got.err)
		}
	}
}

// cancelled is what an engine counted when it had ended requests of one Submit that were cancelled behind the first token.
func cancelled(t *testing.T, change func(*Config), requests ...Request) Stats {
	t.Helper()
	var release func()
	f := newFixture(t, func(c *Config, f *fixture) {
		change(c)
		release = holdFrom(f, 20)
	})
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	events, err := f.Submit(ctx, requests...)
	if err != nil {
		t.Fatal(err)
	}
	first(events)
	cancel()
	synctest.Wait() // the engine knows
	release()
	readAll(events, len(requests))
	return f.settle(t)
}

func TestCancelFreesBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cancelled(t, func(*Config) {}, greedy([]int32{1, 2, 3}, 390), greedy([]int32{1, 2}, 300))
		if s.Cancelled != 2 || s.BlocksUsed != 0 || s.BlocksFree+s.BlocksCached != s.BlocksTotal || s.Running+s.Waiting != 0 {
			t.Errorf("after cancelling: %+v", s)
		}
	})
}

// Nobody reads: the engine must not wait, and the other request must finish.
func TestSlowConsumerHoldsNobodyUp(t *testing.T) {
	f := newFixture(t, nil)
	slow := f.submit(t, greedy([]int32{1}, 300))
	got := f.ask(t, greedy([]int32{2}, 350))
	if want := f.model.greedy([]int32{2}, 350); !slices.Equal(got.tokens, want) {
		t.Errorf("beside a slow consumer: got %v, want %v", got.tokens, want)
	}
	if err := f.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := read(slow)
	if want := f.model.greedy([]int32{1}, 300); late.finish != FinishLength || !slices.Equal(late.tokens, want) {
		t.Errorf("read late: got %d tokens and %q, want %d and length", len(late.tokens), late.finish, len(want))
	}
}

// Readers that went away leave no goroutine behind, and what they did not read is there as long as they may come back.
func TestUnreadEvents(t *testing.T) {
	for _, name := range []string{"the context ends", "the engine closes"} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			f := newFixture(t, nil)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			events, err := f.Submit(ctx, greedy([]int32{1}, 200), greedy([]int32{2}, 100))
			if err != nil {
				t.Fatal(err)
			}
			first(events) // it has begun
			if err := f.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := before // the loop is gone
			if name == "the context ends" {
				cancel()
				want++
			} else if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			await.Goroutines(t, want)
			n := 0
			for range events.All() {
				n++
			}
			if n != 299 {
				t.Errorf("%d events were left, want 299", n)
			}
		})
	}
}

// Requests of one Submit come all or none, share an inbox, and end one by one.
func TestRequestsOfOneSubmit(t *testing.T) {
	var release func()
	f := newFixture(t, func(c *Config, f *fixture) {
		c.MaxWaiting, c.MaxWaitingTokens = 3, 20
		release = holdFrom(f, 10) // there is a token by then
	})
	defer release()
	good := greedy([]int32{1, 2}, 30)
	cases := []struct {
		name     string
		requests []Request
		want     error
	}{
		{"one is bad", []Request{good, greedy(nil, 1)}, option.Invalid(option.Prompt, "is empty")},
		{"one is too long", []Request{good, greedy([]int32{1}, 400)}, &TooLong{Tokens: 401, Limit: 400}},
		{"too many", []Request{good, good, good, good}, &QueueFull{Requests: 4, RequestLimit: 3, Tokens: 8, TokenLimit: 20}},
		{"too many tokens", []Request{good, greedy(make([]int32, 19), 1)}, &QueueFull{Requests: 2, RequestLimit: 3, Tokens: 21, TokenLimit: 20}},
	}
	for _, c := range cases {
		if _, err := f.Submit(t.Context(), c.requests...); fmt.Sprintf("%T %v", err, err) != fmt.Sprintf("%T %v", c.want, c.want) {
			t.Errorf("%s: got %T %v, want %T %v", c.name, err, err, c.want, c.want)
		}
	}
	if s := f.Stats(); s.Running+s.Waiting != 0 || s.PromptTokens != 0 {
		t.Errorf("after refusals: %+v", s)
	}
	events, err := f.Submit(t.Context(), good, greedy([]int32{3}, 390), greedy([]int32{4}, 20))
	if err != nil {
		t.Fatal(err)
	}
	var tokens [3][]int32
	var ends [3]Finish
	for e := range events.All() {
		if ends[e.Request] != "" {
			t.Errorf("request %d goes on after %q: %+v", e.Request, ends[e.Request], e)
		}
		if ends[e.Request] = e.Finish; e.Token >= 0 {
			tokens[e.Request] = append(tokens[e.Request], e.Token)
		}
		if len(tokens[1]) == 1 {
			events.Cancel(1)
			release()
		}
	}
	if want := [3]Finish{FinishLength, FinishCancelled, FinishLength}; ends != want || len(tokens[1]) >= 390 {
		t.Errorf("got ends %q after %d tokens of the one that was cancelled, want %q", ends, len(tokens[1]), want)
	}
	for i, prompt := range [][]int32{{1, 2}, {3}, {4}} {
		if want := f.model.greedy(prompt, len(tokens[i])); !slices.Equal(tokens[i], want) {
			t.Errorf("request %d: got %v, want %v", i, tokens[i], want)
		}
	}
	if s := f.settle(t); s.Cancelled != 1 || s.Finished != 2 || s.BlocksUsed != 0 {
		t.Errorf("after all: %+v", s)
	}
}

// An end is noticed while the next step runs already: it gives nothing, and the neighbours' tokens stay.
func TestEndsAreNoticedLate(t *testing.T) {
	f := newFixture(t, func(c *Config, f *fixture) { c.Device = f.ahead })
	prompt := []int32{1, 2, 3}
	free := f.model.greedy(prompt, 30)
	r := greedy(prompt, 30)
	r.End = []int32{free[7]}
	first := slices.Index(free, free[7])
	neighbour := f.submit(t, greedy([]int32{5}, 60))
	for range 3 {
		if got := f.ask(t, r); got.finish != FinishStop || !slices.Equal(got.tokens, free[:first+1]) {
			t.Errorf("got %v %v, want %v and a stop", got.tokens, got.finish, free[:first+1])
		}
	}
	if got, want := read(neighbour), f.model.greedy([]int32{5}, 60); !slices.Equal(got.tokens, want) {
		t.Errorf("the neighbour: got %v, want %v", got.tokens, want)
	}
	if s := f.settle(t); s.BlocksUsed != 0 || s.Finished != 4 || f.ahead.most != 2 {
		t.Errorf("%+v, at most %d steps in flight", s, f.ahead.most)
	}
}

func TestCloseEndsRequests(t *testing.T) {
	f := newFixture(t, nil)
	var inboxes []*Inbox
	for range 20 {
		inboxes = append(inboxes, f.submit(t, greedy([]int32{1}, 390)))
	}
	first(inboxes[0])
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, events := range inboxes {
		read(events)
	}
	if _, err := f.Submit(t.Context(), greedy([]int32{1}, 1)); !errors.Is(err, ErrDraining) {
		t.Errorf("Submit after Close: got %v, want %v", err, ErrDraining)
	}
}

func TestHeartbeatStopsWhileAStepHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var release func()
		f := newFixture(t, func(c *Config, f *fixture) { release = hold(f) })
		defer release()
		time.Sleep(time.Second)
		if age := time.Since(f.Heartbeat()); age != 0 {
			t.Errorf("idle: the last beat was %v ago", age)
		}
		events := f.submit(t, greedy([]int32{1}, 2))
		time.Sleep(time.Second)
		if age := time.Since(f.Heartbeat()); age != time.Second {
			t.Errorf("a step hangs: the last beat was %v ago, want 1 s", age)
		}
		release()
		read(events)
	})
}

// Many goroutines submit, cancel and read at their own pace: every token must be right and every block must come back.
func TestSoak(t *testing.T) {
	cases := []struct {
		name        string
		ahead, slow bool
	}{{"one step in flight", false, false}, {"two steps in flight", true, false}, {"two steps in flight, slow", true, true}}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			soak(t, newFixture(t, func(c *Config, f *fixture) {
				c.Device, c.Blocks, c.ChunkTokens, c.MaxSequences, c.Graphs = f.graphs, 40, 7, 6, GraphsFullAndPiecewise
				if f.device.slow = test.slow; test.ahead {
					c.Device = f.ahead
				}
			}))
		})
	}
}

func soak(t *testing.T, f *fixture) {
	var group sync.WaitGroup
	for worker := range uint64(8) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(worker, 6))
			for range 15 {
				prompt := append([]int32{1, 2, 3, 4, 5, 6, 7, 8, 9}[:r.IntN(10)], random(r, 1+r.IntN(20))...)
				request := greedy(prompt, 1+r.IntN(30))
				switch r.IntN(4) { // most steps edit logits, some do not
				case 0:
					request.Sampling.FrequencyPenalty = 0.5
				case 1:
					request.End, request.MinTokens = random(r, 4), min(3, request.MaxTokens)
				}
				ctx, cancel := context.WithCancel(t.Context())
				events, err := f.Submit(ctx, request)
				if err != nil {
					t.Errorf("Submit: %v", err)
				} else if r.IntN(3) == 0 {
					for range r.IntN(5) {
						first(events)
					}
					cancel()
					read(events)
				} else if got, want := read(events), f.model.drawn(request); !slices.Equal(got.tokens, want) {
					t.Errorf("%+v: got %v (%v), want %v", request, got.tokens, got.err, want)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if s := f.settle(t); s.BlocksUsed != 0 || s.BlocksFree+s.BlocksCached != s.BlocksTotal || s.FailedSteps != 0 {
		t.Errorf("after all: %+v", s)
	}
}

func TestBetweenRunsWhileNothingIsInFlight(t *testing.T) {
	f := newFixture(t, nil)
	var nothing error
	if err := f.Between(func() error { return nothing }); err != nil {
		t.Errorf("idle: got %v", err)
	}
	want := read(f.submit(t, greedy([]int32{1, 2, 3}, 60)))
	events := f.submit(t, greedy([]int32{1, 2, 3}, 60))
	for i := range 5 {
		failure := fmt.Errorf("failure %d", i)
		err := f.Between(func() error {
			if f.takeoff != f.landed {
				t.Errorf("%d steps are in flight", f.takeoff-f.landed)
			}
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("got %v, want %v", err, failure)
		}
	}
	if got := read(events); !slices.Equal(got.tokens, want.tokens) || got.finish != want.finish {
		t.Errorf("interrupted: got %v %v, want %v %v", got.tokens, got.finish, want.tokens, want.finish)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Between(func() error { return nil }); err == nil {
		t.Error("closed: want an error")
	}
}
