package sched

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

func TestAddRefuses(t *testing.T) {
	cases := []struct {
		name     string
		prompt   int
		generate int
		want     error
	}{
		{"fits exactly", 30, 11, nil},
		{"one over the pool", 30, 12, &TooLong{42, 41}},
		{"prompt over the pool", 41, 1, &TooLong{42, 41}},
		{"largest int", 1, math.MaxInt, &TooLong{1 + math.MaxInt32, 41}},
		{"no prompt", 0, 1, errors.New("a sequence of 0 tokens that generates 1 (both must be at least 1)")},
		{"nothing to generate", 1, 0, errors.New("a sequence of 1 tokens that generates 0 (both must be at least 1)")},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine(t, Limits{BatchTokens: 8, Sequences: 2, Outputs: 2}, 10, true)
			err := m.s.Add(&Sequence{Tokens: make([]int32, test.prompt), MaxTokens: test.generate})
			if fmt.Sprint(err) != fmt.Sprint(test.want) || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", test.want) {
				t.Errorf("got %T %v, want %T %v", err, err, test.want, test.want)
			}
			m.run()
		})
	}
}

// Sequences that are added together are queued together or not at all.
func TestAddIsAllOrNone(t *testing.T) {
	m := newMachine(t, Limits{BatchTokens: 8, Sequences: 2, Outputs: 2, Waiting: 3, WaitingTokens: 20}, 10, true)
	prompt := func(n int) *Sequence { return &Sequence{Tokens: make([]int32, n), MaxTokens: 1} }
	for _, c := range [][]*Sequence{{prompt(1), prompt(0)}, {prompt(1), prompt(41)}, {prompt(1), prompt(1), prompt(1), prompt(1)}, {prompt(10), prompt(11)}} {
		if err := m.s.Add(c...); err == nil {
			t.Errorf("%d sequences, the last one of %d tokens: accepted", len(c), len(c[len(c)-1].Tokens))
		}
	}
	if n, tokens := m.s.Waiting(); n != 0 || tokens != 0 {
		t.Errorf("after refusals %d sequences of %d tokens wait", n, tokens)
	}
	if err := m.s.Add(prompt(5), prompt(6), prompt(7)); err != nil {
		t.Error(err)
	}
	if n, tokens := m.s.Waiting(); n != 3 || tokens != 18 {
		t.Errorf("%d sequences of %d tokens wait, want 3 of 18", n, tokens)
	}
}

func TestQueueIsBounded(t *testing.T) {
	limits := Limits{BatchTokens: 8, Sequences: 2, Outputs: 2, Waiting: 3, WaitingTokens: 20}
	cases := []struct {
		name    string
		prompts []int
		want    error // of the last
	}{
		{"requests", []int{1, 1, 1, 1}, &QueueFull{4, 3, 4, 20}},
		{"tokens", []int{10, 11}, &QueueFull{2, 3, 21, 20}},
		{"one alone may be longer", []int{30}, nil},
		{"all fit", []int{10, 5, 5}, nil},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine(t, limits, 10, true)
			var err error
			for _, n := range test.prompts {
				if err != nil {
					t.Fatalf("refused early: %v", err)
				}
				err = m.s.Add(&Sequence{Tokens: make([]int32, n), MaxTokens: 1})
			}
			if fmt.Sprint(err) != fmt.Sprint(test.want) {
				t.Errorf("prompts of %v: got %v, want %v", test.prompts, err, test.want)
			}
			m.run()
		})
	}
}
