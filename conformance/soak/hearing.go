package soak

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// part is what a piece of an answer belongs to. Answers here have their parts in this order.
type part int

const (
	nothing part = iota
	thoughts
	text
	call
)

// said is what one choice says.
type said struct {
	thoughts, text string
	calls          []string // their arguments
}

// wanted is what a choice is to say.
type wanted struct {
	said
	raw []string // what the model writes behind so many calls
}

// hearing holds an answer, piece by piece, against what it alone may say.
type hearing struct {
	want   []wanted // by choice
	got    []said
	last   []part // that each choice had a piece of
	roles  []bool // that each choice has told
	ends   []end  // of each choice
	id     string
	ids    *sync.Map // of all answers: no two have the same
	leave  moment
	pieces int
	events int
	of     [call + 1]int // pieces by part
}

// end is how a choice ended.
type end int

const (
	open end = iota
	whole
	cut // there were no more tokens
)

// errLeft is that the moment to leave has come.
var errLeft = errors.New("the client leaves")

func newHearing(want []wanted, leave moment, ids *sync.Map) *hearing {
	n := len(want)
	return &hearing{want: want, got: make([]said, n), last: make([]part, n), roles: make([]bool, n), ends: make([]end, n), ids: ids, leave: leave}
}

// named takes the id that an event names.
func (h *hearing) named(id string) error {
	switch _, taken := h.ids.Load(id); {
	case id == "" || h.id != "" && id != h.id:
		return fmt.Errorf("the id is %q, behind %q", id, h.id)
	case h.id == "" && taken:
		return fmt.Errorf("the id %q is of another answer", id)
	}
	h.id = id
	h.ids.Store(id, true)
	return nil
}

// begins takes the beginning of a call, by its number.
func (h *hearing) begins(choice, number int, name, id string) error {
	if err := h.goesOn(choice, call); err != nil {
		return err
	}
	got := &h.got[choice]
	if number != len(got.calls) || number == len(h.want[choice].calls) || name != "note" || len(id) < 16 {
		return fmt.Errorf("call %d of %q with id %q begins behind %d calls", number, name, id, len(got.calls))
	}
	got.calls = append(got.calls, "")
	if _, taken := h.ids.LoadOrStore(id, true); taken {
		return fmt.Errorf("the id %q of a call is another's", id)
	}
	return nil
}

// hear takes a piece: of the last call, where it is of one.
func (h *hearing) hear(choice int, p part, piece string) error {
	if piece == "" {
		return nil
	}
	if err := h.goesOn(choice, p); err != nil {
		return err
	}
	h.pieces++
	h.of[p]++
	got, want := &h.got[choice], &h.want[choice]
	ok := false
	switch p {
	case thoughts:
		got.thoughts += piece
		ok = begins(got.thoughts, want.thoughts+"\n") // where the answer is cut before they are closed
	case text:
		got.text += piece // ends with the beginning of a call's mark where the answer is cut within that
		ok = begins(got.text, want.text+want.raw[len(got.calls)])
	case call:
		n := len(got.calls) - 1
		if n < 0 {
			return fmt.Errorf("%q is of no call", piece)
		}
		got.calls[n] += piece
		ok = begins(got.calls[n], want.calls[n])
	}
	if !ok {
		return fmt.Errorf("the piece %q makes %+v, which does not begin %+v", piece, *got, want.said)
	}
	if h.leave.part == p && h.of[p] == h.leave.pieces {
		return errLeft
	}
	return nil
}

// begins tells whether a text is the beginning of another, which may be cut within a code point.
func begins(text, of string) bool { return strings.HasPrefix(of, strings.TrimRight(text, "\ufffd")) }

// goesOn checks that a choice may have a part now. A text may come behind calls: the mark of another one that was cut.
func (h *hearing) goesOn(choice int, p part) error {
	if choice < 0 || choice >= len(h.want) || h.ends[choice] != open || p < min(h.last[choice], text) {
		return fmt.Errorf("part %d of choice %d of %d, behind part %v, ended %v", p, choice, len(h.want), h.last, h.ends)
	}
	h.last[choice] = max(p, h.last[choice])
	return nil
}

// ended takes the end of a choice: one that was not cut has said everything.
func (h *hearing) ended(choice int, e end) error {
	if err := h.goesOn(choice, call); err != nil {
		return err
	}
	h.ends[choice] = e
	got, want := h.got[choice], h.want[choice].said
	if e == whole && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		return fmt.Errorf("the answer ends as %q, want %q", got, want)
	}
	return nil
}

// complete checks that every choice has ended.
func (h *hearing) complete() error {
	for choice, e := range h.ends {
		if e == open {
			return fmt.Errorf("choice %d has no end: %q", choice, h.got[choice])
		}
	}
	return nil
}

// endOf is the end that a dialect has a word for: with calls and without, or cut.
func (h *hearing) endOf(choice int, word, stop, calls, length string) (end, error) {
	switch {
	case word == length:
		return cut, nil
	case word == stop && len(h.got[choice].calls) == 0, word == calls && len(h.got[choice].calls) > 0:
		return whole, nil
	}
	return open, fmt.Errorf("choice %d ends with %q behind %d calls", choice, word, len(h.got[choice].calls))
}
