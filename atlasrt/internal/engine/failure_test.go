package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// A step fails as a whole, and with it what is queued behind it: between the forward pass and sampling, and on a device whose
// errors come late.
func TestFailedStepFailsItsRequestsOnly(t *testing.T) {
	at := func(n int64, err error, panics bool) func(int64) error {
		return func(i int64) error {
			if i == n && panics && err == nil {
				panic("kernel table is empty")
			}
			if i == n {
				return err
			}
			return nil
		}
	}
	penalised := greedy([]int32{1}, 20)
	penalised.Sampling.FrequencyPenalty = 0.5
	faults := []struct {
		name    string
		request Request
		forward func(int64) error
		sampler func(int64) error
		want    string
	}{
		{"error", greedy([]int32{1}, 20), at(5, errBroken, false), nil, "the device is on fire"},
		{"panic", greedy([]int32{1}, 20), at(5, nil, true), nil, "a step panicked: kernel table is empty"},
		{"panic and error", greedy([]int32{1}, 20), at(5, errPanic, false), nil, "a step panicked: kernel table is empty"},
		{"error before late inputs", penalised, at(5, errBroken, false), nil, "the device is on fire"},
		{"error behind late inputs", penalised, nil, at(5, errBroken, false), "the device is on fire"},
		{"panic behind late inputs", penalised, nil, at(5, nil, true), "a step panicked: kernel table is empty"},
	}
	devices := []struct {
		name        string
		ahead, slow bool
	}{{"one step in flight", false, false}, {"two steps in flight", true, false}, {"two steps in flight, slow", true, true}}
	for _, test := range faults {
		for _, d := range devices {
			t.Run(test.name+", "+d.name, func(t *testing.T) {
				f := newFixture(t, func(c *Config, f *fixture) {
					if d.ahead {
						c.Device = f.ahead
					}
					f.device.slow, f.device.fault, f.device.sampler = d.slow, test.forward, test.sampler
				})
				got := f.ask(t, test.request)
				if got.finish != FinishError || got.err == nil || !strings.Contains(got.err.Error(), test.want) || len(got.tokens) != 4 {
					t.Errorf("got %d tokens, %v %v; want 4 and an error with %q", len(got.tokens), got.finish, got.err, test.want)
				}
				if err := f.Err(); err != nil {
					t.Errorf("the device works, and Err says %v", err)
				}
				got = f.ask(t, test.request)
				if want := f.model.drawn(test.request); got.err != nil || !slices.Equal(got.tokens, want) {
					t.Errorf("afterwards: got %v %v, want %v", got.tokens, got.err, want)
				}
				failed := uint64(1)
				if d.slow {
					failed = 2 // one was behind it
				}
				if s := f.Stats(); s.Failed != 1 || s.FailedSteps != failed || s.BlocksUsed != 0 || f.Err() != nil {
					t.Errorf("stats: %+v, %v", s, f.Err())
				}
			})
		}
	}
}

// A device that stays broken fails every request with its error and says so, until it works again.
func TestBrokenDevice(t *testing.T) {
	var broken atomic.Bool
	f := newFixture(t, func(c *Config, f *fixture) {
		f.device.fault = func(int64) error {
			if broken.Load() {
				return errBroken
			}
			return nil
		}
		f.device.sync = func() error { return f.device.fault(0) }
	})
	was := false
	for _, now := range []bool{false, true, true, false} {
		broken.Store(now)
		got := f.ask(t, greedy([]int32{1}, 3))
		was = was || now
		select {
		case <-f.Lost():
			if !was {
				t.Error("the device works and is said to be lost")
			}
		default:
			if was {
				t.Error("nobody is told that the device is lost")
			}
		}
		if now && (got.finish != FinishError || !errors.Is(got.err, errBroken) || !errors.Is(f.Err(), errBroken)) {
			t.Errorf("broken: got %v %v, Err %v; want %v", got.finish, got.err, f.Err(), errBroken)
		}
		if !now && (got.finish != FinishLength || f.Err() != nil) {
			t.Errorf("working: got %v %v, Err %v", got.finish, got.err, f.Err())
		}
	}
	if s := f.Stats(); s.Failed != 2 || s.Finished != 2 || s.BlocksUsed != 0 {
		t.Errorf("stats: %+v", s)
	}
}

// Where recording fails, each kind of step falls back by itself, and the tokens stay what they are.
func TestStepsThatCannotBeRecorded(t *testing.T) {
	all := func(int64) error { return errBroken }
	cases := []struct {
		name      string
		mode      GraphMode
		refuse    func(int64) error
		fallbacks uint64
		full      bool // whole steps are replayed
		parts     bool
	}{
		{"nothing", GraphsFullDecodeOnly, all, 2, false, false},
		{"nothing, of both kinds", GraphsFull, all, 4, false, false},
		{"in pieces", GraphsFullDecodeOnly, func(n int64) error { // the first decode step, whole
			if n == 1 {
				return errBroken
			}
			return nil
		}, 1, false, true},
		{"second piece", GraphsPiecewise, func(n int64) error {
			if n == 2 {
				return errBroken
			}
			return nil
		}, 1, false, true},
		{"second mailbox", GraphsFullDecodeOnly, func(n int64) error {
			if n == 2 {
				return errBroken
			}
			return nil
		}, 1, true, true}, // once whole, then in pieces
		{"none refused", GraphsFullAndPiecewise, nil, 0, true, true},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			f := newFixture(t, func(c *Config, f *fixture) {
				c.Device, c.Graphs, c.ChunkTokens, c.NoPrefixSharing = f.ahead, test.mode, 4, true
				f.graphs.refuse = test.refuse
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
			})
			for round := range 4 {
				prompt := random(rand.New(rand.NewPCG(uint64(round), 9)), 13)
				if got, want := f.ask(t, greedy(prompt, 6)), f.model.greedy(prompt, 6); got.err != nil || !slices.Equal(got.tokens, want) {
					t.Fatalf("round %d: got %v %v, want %v", round, got.tokens, got.err, want)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			s := f.Stats()
			if s.GraphFallbacks != test.fallbacks || s.ReplayedFull > 0 != test.full || s.ReplayedPiecewise > 0 != test.parts || s.FailedSteps != 0 {
				t.Errorf("got %+v, want %d fallbacks, whole steps replayed %v, pieces %v", s, test.fallbacks, test.full, test.parts)
			}
			if n := strings.Count(log.String(), "could not be recorded"); n != int(test.fallbacks) {
				t.Errorf("%d lines in the log, want %d:\n%s", n, test.fallbacks, log.String())
			}
			if n := f.graphs.live.Load(); n != 0 {
				t.Errorf("%d recordings were not closed", n)
			}
		})
	}
}

func TestLogitsThatAreNoNumbersFailOneRequest(t *testing.T) {
	f := newFixture(t, func(_ *Config, f *fixture) { f.model.poison = 9 })
	good, bad := f.submit(t, greedy([]int32{1, 2}, 20)), f.submit(t, greedy([]int32{9, 2}, 20))
	if got := read(bad); got.finish != FinishError || got.err == nil || !strings.Contains(got.err.Error(), "not finite") {
		t.Errorf("not numbers: got %v %v %v, want an error", got.tokens, got.finish, got.err)
	}
	if got, want := read(good), f.model.greedy([]int32{1, 2}, 20); !slices.Equal(got.tokens, want) {
		t.Errorf("its neighbour: got %v %v, want %v", got.tokens, got.err, want)
	}
}
