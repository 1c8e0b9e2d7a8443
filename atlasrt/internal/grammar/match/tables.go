package match

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// tables are what has been made of a program so far. The lock is held while something is made; what is made does not change but for
// pointers that say where it leads. Tables that are full are left to the states that are in them, and new ones are begun.
type tables struct {
	*program
	limits Limits

	lock       sync.Mutex
	regexes    *regex.Set
	mark       regex.Mark          // of the program's expressions
	characters map[kinds]regex.Ref // one character of some kinds
	unsure     map[regex.Ref]bool  // expressions of which it takes too much work to tell whether some text matches
	rows       map[string]*row
	lexers     map[string]*lexer
	nodes      map[string]*node
	begin      *node // before the first byte
	dead       *node // nothing may come, and the text may not end
	alone      *row  // of terminals behind which the text ends, whatever row they are in
	bytes      int   // of rows, lexers, nodes and masks, about
	fixed      int   // bytes of the program's expressions
	full       atomic.Bool

	key    []byte      // scratch of who looks something up
	kernel []item      // scratch of follow
	called []called    // scratch of expand, by symbol less the number of terminals
	refs   []regex.Ref // scratch of classes
}

// newTables begins tables over a set in which nothing was made behind the mark.
func newTables(p *program, limits Limits, regexes *regex.Set, mark regex.Mark, w *work) *tables {
	t := &tables{
		program:    p,
		limits:     limits,
		regexes:    regexes,
		mark:       mark,
		fixed:      regexes.Memory(),
		characters: map[kinds]regex.Ref{},
		unsure:     map[regex.Ref]bool{},
		rows:       map[string]*row{},
		lexers:     map[string]*lexer{},
		nodes:      map[string]*node{},
		called:     make([]called, len(p.symbols)),
		alone:      &row{id: -1},
	}
	t.dead = &node{tables: t, classes: regexes.Classes()}
	t.dead.next = make([]atomic.Pointer[node], 1)
	t.dead.next[0].Store(t.dead)
	regexes.Budget = min(regexes.Budget, aliveBudget)
	first := item{place: firstPlace}
	r := t.row([]item{first}, p.places[firstPlace].ends)
	t.expand(r, w)
	if w.err == nil {
		var at []position
		if len(r.lexer.open) > 0 {
			at = append(at, position{r, r.lexer})
		}
		t.begin = t.node(at, r.accepts, w)
	}
	return t
}

// next begins new tables of the same program.
func (t *tables) next(w *work) *tables {
	t.lock.Lock()
	defer t.lock.Unlock()
	return newTables(t.program, t.limits, t.regexes.Fork(t.mark), t.mark, w)
}

// size is about how many bytes the tables take beyond those of the program.
func (t *tables) size() int { return t.bytes + t.regexes.Memory() - t.fixed }

// check ends the work where the tables are far too large. They are full before: new ones are begun for the next piece of work, and so one piece
// alone has made what is over the limit.
func (t *tables) check(w *work) {
	if t.size() > t.limits.Bytes || len(t.nodes) > t.limits.States {
		t.full.Store(true)
	}
	if t.size() > 2*t.limits.Bytes {
		w.fail(fmt.Sprintf("%d bytes of tables for one token", t.limits.Bytes))
	}
	if len(t.nodes) > 2*t.limits.States {
		w.fail(fmt.Sprintf("%d states for one token", t.limits.States))
	}
}

// note counts bytes that something takes.
func (t *tables) note(bytes int) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.bytes += bytes
	if t.size() > t.limits.Bytes {
		t.full.Store(true)
	}
}

// fresh is a node in tables that are not full.
func (m *Machine) fresh(n *node, w *work) *node {
	current := m.tables.Load()
	if n.tables == current && !current.full.Load() {
		return n
	}
	if moved := n.moved.Load(); moved != nil && moved.tables == current && !current.full.Load() {
		return moved
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if current = m.tables.Load(); current.full.Load() {
		next := current.next(w)
		if w.err != nil {
			return nil
		}
		current = next
		m.tables.Store(next)
	}
	if n.tables == current {
		return n
	}
	n.tables.lock.Lock()
	data := n.tables.appendNode(nil, n)
	n.tables.lock.Unlock()
	moved, err := current.readNode(data, w)
	if err != nil {
		if w.err == nil {
			panic("BUG: a state does not move to new tables: " + err.Error())
		}
		return nil
	}
	n.moved.Store(moved)
	return moved
}
