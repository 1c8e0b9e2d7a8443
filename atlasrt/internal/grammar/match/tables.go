package match

import (
	"sync"
	"sync/atomic"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// tables are what has been made of a program so far. The lock is held while something is made; what is made does not change but for
// pointers that say where it leads.
type tables struct {
	*program
	limits    Limits
	lock      sync.Mutex
	regexes   *regex.Set
	rows      map[string]*row
	lexers    map[string]*lexer
	nodes     map[string]*node
	dead      *node                   // nothing may come, and the text may not end
	alphabets [numAlphabets]regex.Ref // one character of each
	bytes     int                     // of rows, lexers and nodes, about

	key    []byte      // scratch of who looks something up
	kernel []item      // scratch of follow
	refs   []regex.Ref // scratch of classes
}

func newTables(p *program, limits Limits, regexes *regex.Set) *tables {
	t := &tables{
		program: p,
		limits:  limits,
		regexes: regexes,
		rows:    map[string]*row{},
		lexers:  map[string]*lexer{},
		nodes:   map[string]*node{},
	}
	t.dead = &node{tables: t, classes: regexes.Classes()}
	t.dead.next = make([]atomic.Pointer[node], 1)
	t.dead.next[0].Store(t.dead)
	for at := range t.alphabets {
		t.alphabets[at] = alphabets[at].character(regexes)
	}
	return t
}

// start is the node before the first byte.
func (t *tables) start(w *work) *node {
	t.lock.Lock()
	defer t.lock.Unlock()
	first := item{place: firstPlace}
	r := t.row([]item{first}, t.places[firstPlace].ends)
	t.expand(r, w)
	if w.err != nil {
		return nil
	}
	var at []position
	if len(r.lexer.open) > 0 {
		at = append(at, position{r, r.lexer})
	}
	return t.node(at, r.accepts, w)
}

// note counts bytes that something takes.
func (t *tables) note(bytes int) {
	t.lock.Lock()
	t.bytes += bytes
	t.lock.Unlock()
}
