package sched

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The pool is full and every sequence grows: all must finish with the tokens they give alone (T157).
func TestPreemption(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	m := newMachine(t, Limits{BatchTokens: 32, Sequences: 8, Outputs: 8}, 12, true)
	var all []*Sequence
	for range 8 {
		all = append(all, m.add(random(r, 8, 50), 30))
	}
	m.run()
	if m.s.Counts().Preemptions == 0 {
		t.Error("nothing was preempted: the test does not test")
	}
	for i, q := range all {
		if want, _ := alone(q.Tokens[:q.Prompt()], 30, nil); !slices.Equal(q.Generated(), want) {
			t.Errorf("sequence %d: got %v, want %v", i, q.Generated(), want)
		}
	}
}

func TestDecodesComeBeforePrompts(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	m := newMachine(t, Limits{BatchTokens: 8, Sequences: 4, Outputs: 4}, 100, true)
	short := m.add(random(r, 4, 50), 20)
	m.step(nil)
	m.add(random(r, 100, 50), 1)
	for range 10 {
		before := len(short.Generated())
		m.step(nil)
		if got := len(short.Generated()); got != before+1 {
			t.Fatalf("beside a long prompt: %d tokens after a step, want %d", got, before+1)
		}
		if got := m.s.plan.Rows; got != 8 {
			t.Fatalf("rows in the step: got %d, want 8", got)
		}
	}
	m.run()
}

// Short requests without end must not keep a long one from finishing (T167).
func TestNoStarvation(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 4, Outputs: 4}, 40, true)
	for range 8 {
		m.add(random(r, 10, 50), 8)
	}
	long := m.add(random(r, 120, 50), 30)
	for steps := 0; ; steps++ {
		if n, _ := m.s.Waiting(); n < 20 {
			m.add(random(r, 10, 50), 8)
		}
		m.step(nil)
		if finish, _ := long.Finish(); finish != Unfinished {
			break
		}
		if steps > 400 {
			t.Fatalf("the long request has %d of 30 tokens after %d steps", len(long.Generated()), steps)
		}
	}
}

func TestFailedStepFailsItsSequencesOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 2}, 40, true)
	a, b := m.add(random(r, 5, 50), 5), m.add(random(r, 5, 50), 5)
	later := m.add(random(r, 5, 50), 5)
	plan := m.s.Next()
	broken := errors.New("the device is on fire")
	m.s.Done(plan, Results{Err: broken})
	for _, q := range []*Sequence{a, b} {
		if finish, err := q.Finish(); finish != Failed || err != broken {
			t.Errorf("in the step: got %v %v, want %v %v", finish, err, Failed, broken)
		}
	}
	m.run()
	if want, _ := alone(later.Tokens[:5], 5, nil); !slices.Equal(later.Generated(), want) {
		t.Errorf("after the step: got %v, want %v", later.Generated(), want)
	}
}

func TestNoTokenFailsOneSequence(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 2}, 40, true)
	a, b := m.add([]int32{1, 2}, 3), m.add([]int32{3, 4}, 3)
	m.silent = a
	m.run()
	if finish, err := a.Finish(); finish != Failed || !errors.Is(err, ErrNoToken) {
		t.Errorf("without a token: got %v %v, want %v %v", finish, err, Failed, ErrNoToken)
	}
	if want, _ := alone([]int32{3, 4}, 3, nil); !slices.Equal(b.Generated(), want) {
		t.Errorf("its neighbour: got %v, want %v", b.Generated(), want)
	}
}

func TestScoredPromptGivesEveryRow(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 3, Outputs: 4}, 40, true)
	prompt := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	m.add(prompt, 2)
	m.run() // the prompt is cached now
	q := &Sequence{Tokens: slices.Clone(prompt), MaxTokens: 2, Score: true}
	if err := m.s.Add(q); err != nil {
		t.Fatal(err)
	}
	m.add([]int32{1}, 20)
	rows := 0
	for {
		plan := m.s.Next()
		if len(plan.Chunks) == 0 {
			break
		}
		var results Results
		for _, c := range plan.Chunks {
			if c.Sequence == q && len(q.Generated()) == 0 {
				if c.Start != rows || c.Outputs != c.Rows {
					t.Errorf("chunk %+v, want it to start at %d with all rows", c, rows)
				}
				rows += c.Rows
			}
			if c.Draws > 0 {
				results.Tokens = append(results.Tokens, continuation(c.Sequence.Tokens))
			}
		}
		m.s.Done(plan, results)
	}
	if rows != len(prompt) {
		t.Errorf("rows with logits: got %d, want %d", rows, len(prompt))
	}
}

func TestCachedPrefixIsCounted(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 64, Sequences: 2, Outputs: 2}, 40, true)
	prompt := random(rand.New(rand.NewPCG(5, 1)), 18, 50)
	m.add(prompt, 2)
	m.run()
	again := m.add(prompt, 2)
	m.run()
	if again.Cached() != 16 {
		t.Errorf("cached tokens: got %d, want 16", again.Cached())
	}
	if got := m.s.Counts(); got.PrefixHits != 16 || got.PrefixQueries != 36 || got.PromptTokens != 36 {
		t.Errorf("counts: got %+v, want 16 hits of 36", got)
	}
}

// Random requests, sizes, cancels and limits, with states and drafts and without: every request ends, tokens are those it gives alone, blocks
// and slots balance, and requests start in order. Drafts are right or wrong in every way. Some draws are dropped: their tokens are known, or they
// are made again.
func TestRandom(t *testing.T) {
	counts, cut, dropped := map[count]int{}, 0, dropper{}
	defer func() {
		for draws := 2; draws <= 4; draws++ {
			for n := 1; n <= draws; n++ {
				for _, follows := range []bool{false, true} {
					if counts[count{draws, n, follows}] == 0 {
						t.Errorf("it never came about that %d of %d draws counted, for a chunk that follows %v", n, draws, follows)
					}
				}
			}
		}
		if cut == 0 {
			t.Error("no sequence ended among the draws that count")
		}
		if dropped.took < 100 || dropped.ended == 0 || dropped.again < 100 {
			t.Errorf("the test does not test: %+v", dropped)
		}
	}()
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			limits := Limits{Sequences: 1 + r.IntN(8), Draws: 1 + int(seed/2%4)}
			limits.BatchTokens = limits.Sequences*limits.Draws + r.IntN(40)
			limits.Outputs = limits.Sequences*limits.Draws + r.IntN(4)
			limits.ChunkTokens = r.IntN(3) * r.IntN(5)
			slots := 0
			if seed%3 == 0 {
				slots = 1 + r.IntN(limits.Sequences) // which may be fewer than would run
			}
			m := newMachineWithStates(t, limits, 6+r.IntN(30), slots, seed%4 != 0)
			m.depth = 1 + int(seed%2)
			if seed%7 < 4 {
				changes := rand.New(rand.NewPCG(seed, 4))
				m.deep = func() int { return changes.IntN(limits.Draws) }
			}
			d := dropper{m: m, r: rand.New(rand.NewPCG(seed, 3))}
			if seed%5 < 2 {
				m.drop = d.drop
			}
			common := random(r, 16, 50)
			type job struct {
				q      *Sequence
				prompt []int32
				cancel int // at this step
			}
			var jobs []job
			for step := 0; step < 100 || m.s.Running() > 0; step++ {
				if step > 20_000 {
					t.Fatal("no end")
				}
				for step < 100 && r.IntN(2) == 0 {
					prompt := append(slices.Clone(common[:r.IntN(17)]), random(r, 1+r.IntN(20), 50)...)
					q := &Sequence{Tokens: slices.Clone(prompt), MaxTokens: 1 + r.IntN(30), End: []int32{3, 17}, Score: r.IntN(6) == 0, Waits: r.IntN(9) == 0, Single: r.IntN(9) == 0}
					var tooLong *TooLong
					if err := m.s.Add(q); errors.As(err, &tooLong) {
						continue
					} else if err != nil {
						t.Fatal(err)
					}
					cancel := -1
					if r.IntN(4) == 0 {
						cancel = step + r.IntN(30)
					}
					jobs = append(jobs, job{q, prompt, cancel})
				}
				cancelAll := func() {
					for _, j := range jobs {
						if j.cancel == step {
							m.s.Cancel(j.q)
						}
					}
				}
				d.release(r.IntN(4) > 0)
				if r.IntN(2) == 0 {
					cancelAll()
					m.step(nil)
				} else if !m.step(cancelAll) {
					cancelAll()
				}
				for i := 1; i < len(m.s.running); i++ {
					older, younger := m.s.running[i-1], m.s.running[i]
					at := func(q *Sequence) int { return slices.IndexFunc(jobs, func(j job) bool { return j.q == q }) }
					if at(older) >= at(younger) {
						t.Fatalf("step %d: request %d runs before request %d", step, at(older), at(younger))
					}
				}
			}
			for m.drop = nil; len(d.held) > 0; {
				d.release(true)
			}
			m.run()
			dropped.took, dropped.ended, dropped.again = dropped.took+d.took, dropped.ended+d.ended, dropped.again+d.again
			for c, n := range m.counts {
				counts[c] += n
			}
			cut += m.cut
			for i, j := range jobs {
				want, finish := alone(j.prompt, j.q.MaxTokens, j.q.End)
				switch got, err := j.q.Finish(); {
				case got == Cancelled && j.cancel >= 0:
					if n := len(j.q.Generated()); n > len(want) || !slices.Equal(j.q.Generated(), want[:n]) {
						t.Errorf("request %d, cancelled: got %v, want the beginning of %v", i, j.q.Generated(), want)
					}
				case got != finish || err != nil:
					t.Errorf("request %d: got finish %v %v, want %v", i, got, err, finish)
				case !slices.Equal(j.q.Generated(), want):
					t.Errorf("request %d: got %v, want %v", i, j.q.Generated(), want)
				}
			}
		})
	}
}

// With two steps in flight the next token is planned before it is known, and an end is noticed one step late.
func TestStepsAhead(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 32, Sequences: 4, Outputs: 4}, 40, true)
	m.depth = 2
	prompt := []int32{1, 2, 3, 4, 5}
	free, _ := alone(prompt, 20, nil)
	stops, length := m.add(prompt, 20), m.add([]int32{7, 8}, 9)
	stops.End = free[6:7]
	steps := m.run()
	want, _ := alone(prompt, 20, stops.End)
	if finish, _ := stops.Finish(); finish != Stop || !slices.Equal(stops.Generated(), want) {
		t.Errorf("got %v %v, want %v and a stop", stops.Generated(), finish, want)
	}
	if want, _ := alone([]int32{7, 8}, 9, nil); !slices.Equal(length.Generated(), want) {
		t.Errorf("got %v, want %v", length.Generated(), want)
	}
	if m.surplus != 1 {
		t.Errorf("computed %d tokens in vain, want 1: an end at max_tokens is foreseen", m.surplus)
	}
	if steps > 12 {
		t.Errorf("took %d steps for 9 tokens, want each but the first ahead", steps)
	}
}

// No step is planned ahead of one whose logits are read: those of a prompt that is scored, or of every token of a sequence.
func TestStepsWhoseLogitsAreReadAreNotOvertaken(t *testing.T) {
	cases := []struct {
		name         string
		waits, score bool
		alone        int // steps before one is planned behind another
	}{
		{"each token", true, false, 5},
		{"the prompt, in two chunks", false, true, 2},
		{"both", true, true, 6},
		{"nothing", false, false, 0},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine(t, Limits{BatchTokens: 32, Sequences: 4, Outputs: 4, ChunkTokens: 4}, 40, true)
			m.depth = 2
			m.add([]int32{3, 4}, 12)
			q := &Sequence{Tokens: []int32{1, 2, 5, 6}, MaxTokens: 5, Waits: test.waits, Score: test.score}
			if err := m.s.Add(q); err != nil {
				t.Fatal(err)
			}
			got := 0
			for m.step(nil); ; m.step(nil) {
				if m.step(nil); len(m.flights) > 0 || got > 30 { // planned while one was in flight
					break
				}
				got++
			}
			if got != test.alone {
				t.Errorf("%d steps before one is planned behind another, want %d", got, test.alone)
			}
			m.run()
		})
	}
}

// Every sequence of a step that failed has failed, and the step behind it brings nothing more.
func TestFailureWithTwoStepsInFlight(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 16, Sequences: 2, Outputs: 2}, 40, true)
	m.depth = 2
	q := m.add([]int32{1, 2, 3}, 9)
	m.step(nil)
	m.flights = append(m.flights, flight{plan: m.s.Next()})
	broken := errors.New("the device is on fire")
	for i := range m.flights {
		m.flights[i].results = Results{Err: broken}
	}
	m.land()
	m.land()
	if finish, err := q.Finish(); finish != Failed || err != broken || m.surplus != 1 {
		t.Errorf("got %v %v, %d in vain; want %v %v, 1", finish, err, m.surplus, Failed, broken)
	}
	m.run()
}
