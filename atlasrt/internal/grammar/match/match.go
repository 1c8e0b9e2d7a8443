// Package match recognises texts of a grammar token by token, and says which tokens may come next.
//
// It is Earley's algorithm over terminals that are regular expressions, on tables that are made while texts come: what may come at a place is a row,
// rows with the same future are one, and a state of the machine is a few rows with what is left of their terminals. So a byte that has been seen in
// a state costs one lookup, and so does a token's mask. Counts are numbers and not copies; recursion at the end of a rule leaves no trace.
//
// A token's text is its bytes. A control token's text is its name between the bytes 0xFF and 0xFE, which no UTF-8 has: so a grammar
// tells a control token from the same text spelled by others.
package match

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

// Limits bound what a grammar may take. What is zero has a default.
type Limits struct {
	States int // that tables hold at once; beyond, they are begun anew
	Bytes  int // of tables, about; beyond, they are begun anew
	Depth  int // how deep symbols may be nested in a text; what would go deeper may not come
	Steps  int // of work for one token or mask
}

// Defaults of limits.
const (
	defaultStates = 1 << 18
	defaultBytes  = 64 << 20
	defaultDepth  = 1 << 12
	defaultSteps  = 1 << 22
)

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *int
		value int
	}{{&l.States, defaultStates}, {&l.Bytes, defaultBytes}, {&l.Depth, defaultDepth}, {&l.Steps, defaultSteps}} {
		if *d.limit <= 0 {
			*d.limit = d.value
		}
	}
	return l
}

// ErrLimit says that a text takes more than a Machine's Limits.
var ErrLimit = errors.New("the grammar takes more work than is allowed")

// ErrNothing says that a grammar has no text.
var ErrNothing = errors.New("the grammar allows nothing, not even the empty text")

// Machine recognises the texts of a grammar. It may be used by several goroutines at once.
type Machine struct {
	vocabulary *Vocabulary
	limits     Limits
	tables     atomic.Pointer[tables]
	lock       sync.Mutex // of who begins new tables
}

// New prepares a grammar, which must not be used otherwise from now on. The error says what is wrong with it, or that it takes more than the limits.
func New(g *rules.Grammar, v *Vocabulary, limits Limits) (*Machine, error) {
	p, err := compile(g)
	if err != nil {
		return nil, err
	}
	m := &Machine{vocabulary: v, limits: limits.withDefaults()}
	w := m.work()
	t := newTables(p, m.limits, g.Regexes, g.Regexes.Mark(), w)
	if w.err != nil {
		return nil, w.err
	}
	if t.begin == t.dead {
		return nil, ErrNothing
	}
	m.tables.Store(t)
	return m, nil
}

// Bytes is about how much memory the machine takes now. It grows as texts come that are new to it, to twice Limits.Bytes.
func (m *Machine) Bytes() int {
	t := m.tables.Load()
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.bytes + t.regexes.Memory() + placeBytes*len(t.places)
}

// placeBytes is about what a place of a program takes, with its share of symbols.
const placeBytes = 64

// Start is the state before the first token.
func (m *Machine) Start() State { return State{m, m.tables.Load().begin} }

// State is how far a text has come. The zero State allows nothing. States that are equal allow the same; texts that allow the same mostly
// have equal States, unless tables were begun anew between them.
type State struct {
	machine *Machine
	node    *node
}

// Next is the state behind a token. It is false where the token may not come, and where the limits do not allow to tell.
func (s State) Next(token int32) (State, bool) {
	if s.node == nil || token < 0 || int(token) >= s.machine.vocabulary.Tokens() {
		return State{}, false
	}
	text := s.machine.vocabulary.text(token)
	next, n := s.NextBytes(text)
	if n < len(text) || n == 0 {
		return State{}, false
	}
	return next, true
}

// NextBytes is the state behind the longest part of a text that may come, and that part's length in bytes. The limits are those of a token.
func (s State) NextBytes(text []byte) (State, int) {
	if s.node == nil {
		return s, 0
	}
	w := s.machine.work()
	n := s.machine.fresh(s.node, w)
	if n == nil {
		return s, 0
	}
	for at, b := range text {
		next := n.step(b, w)
		if next == nil || next == n.tables.dead {
			return State{s.machine, n}, at
		}
		n = next
	}
	return State{s.machine, n}, len(text)
}

// Done reports whether the text may end here.
func (s State) Done() bool { return s.node != nil && s.node.accepts }

// work counts what is done for one call.
type work struct {
	left int
	err  error
}

func (m *Machine) work() *work { return &work{left: m.limits.Steps} }

// spend reports whether there are steps left, and takes them.
func (w *work) spend(steps int) bool {
	w.left -= steps
	if w.left < 0 {
		w.fail("too many steps for one token")
	}
	return w.err == nil
}

// fail ends the work. what says what it took too much of.
func (w *work) fail(what string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrLimit, what)
	}
}
