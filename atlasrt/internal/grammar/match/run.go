package match

import (
	"math/bits"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// run is characters that may come one behind the other, whichever they are: at most length of these kinds. Mostly more may not come.
type run struct {
	kinds  kinds
	length int
}

// endless is the length of a run without an end.
const endless = manyRunes

// farNodes is how many nodes are looked through for a run that the expressions do not tell.
const farNodes = 4

// covers reports whether all texts of some kinds with so many characters may come.
func (r run) covers(k kinds, runes int) bool { return k&^r.kinds == 0 && runes <= r.length }

// run is the run at the node.
func (n *node) run(w *work) run {
	if known := n.runs.Load(); known != nil {
		return *known
	}
	found := n.tables.run(n.at)
	if found.length == 0 {
		found = n.nearRun(w)
	}
	if w.err != nil {
		return run{}
	}
	n.runs.Store(&found)
	return found
}

// run is the best run that the expressions tell.
func (t *tables) run(at []position) run {
	t.lock.Lock()
	defer t.lock.Unlock()
	best := run{}
	for _, p := range at {
		for _, o := range p.lexer.open {
			found := t.runOf(o.rest)
			if a, b := bits.OnesCount16(uint16(found.kinds)), bits.OnesCount16(uint16(best.kinds)); a > b || a == b && found.length > best.length {
				best = found
			}
		}
	}
	return best
}

// runOf is the run that an expression tells.
func (t *tables) runOf(r regex.Ref) run {
	if !t.regexes.HasRun(r) {
		return run{}
	}
	var found run
	for k := kinds(1); k < anyText; k <<= 1 {
		more := min(t.regexes.Run(r, t.character(found.kinds|k)), endless)
		if more > 0 && more >= min(found.length, nearBytes) {
			found = run{found.kinds | k, more}
		}
	}
	return found
}

// character is one character of some kinds.
func (t *tables) character(k kinds) regex.Ref {
	r, known := t.characters[k]
	if !known {
		r = k.character(t.regexes)
		t.characters[k] = r
	}
	return r
}

// nearRun is the run that nodes near by tell, as with rules that repeat a character.
func (n *node) nearRun(w *work) run {
	var all kinds
	for k := kinds(1); k < odd; k <<= 1 {
		if k == foreign {
			k |= odd
		}
		if _, ok := n.afterRune(k, w); ok {
			all |= k
		}
	}
	if all == 0 {
		return run{}
	}
	seen := []*node{n}
	length := 0
	for from := 0; from < len(seen); length++ {
		end := len(seen)
		if end > farNodes {
			return run{all, length}
		}
		for ; from < end; from++ {
			after, ok := seen[from].afterRune(all, w)
			if !ok {
				return run{all, length}
			}
			for _, next := range after {
				if !slices.Contains(seen, next) {
					seen = append(seen, next)
				}
			}
		}
	}
	return run{all, endless}
}

// afterRune are the nodes behind one character of some kinds, which are known. It is false where some character may not come.
func (n *node) afterRune(k kinds, w *work) ([]*node, bool) {
	type half struct {
		node  *node
		shape int
	}
	var after []*node
	todo := []half{{n, atStart}}
	for at := 0; at < len(todo); at++ {
		from := todo[at]
		var seen [256]uint16 // shapes behind a byte of each class
		first, end := 0, 256
		if from.shape != atStart {
			first, end = 0x80, 0xC0
		}
		for b := first; b < end; b++ {
			if from.shape == atStart && !k.begins(byte(b)) {
				continue
			}
			to := shape(from.shape, byte(b))
			class := from.node.classes.Of[b]
			if to == noShape || seen[class]>>to&1 != 0 {
				continue
			}
			seen[class] |= 1 << to
			next := from.node.step(byte(b), w)
			if next == nil || next == n.tables.dead || !w.spend(1) {
				return nil, false
			}
			if to != atStart && !slices.Contains(todo, half{next, to}) {
				todo = append(todo, half{next, to})
			}
			if to == atStart && !slices.Contains(after, next) {
				after = append(after, next)
			}
		}
	}
	return after, true
}

// stays reports whether the node does the same behind every character of one of tailKinds, as far as near tokens go.
func (n *node) stays(at int, w *work) bool {
	if known := n.still[at].Load(); known != 0 {
		return known == 2
	}
	short := n.shorten(w)
	if short == nil {
		return false
	}
	after, ok := n.afterRune(tailKinds[at], w)
	ok = ok && !slices.ContainsFunc(after, func(next *node) bool { return next.shorten(w) != short })
	if w.err == nil {
		n.still[at].Store(1 + int32(one(ok)))
	}
	return ok && w.err == nil
}

// staysSomehow reports whether the node stays for some of tailKinds.
func (n *node) staysSomehow(w *work) bool {
	for at := range tailKinds {
		if n.stays(at, w) {
			return true
		}
	}
	return false
}

// isStill reports whether the node is known to stay.
func (n *node) isStill() bool {
	for at := range n.still {
		if n.still[at].Load() == 2 {
			return true
		}
	}
	return false
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stops reports whether nothing of the kinds of a run may come behind it.
func (n *node) stops(r run, w *work) bool {
	if !r.kinds.known() {
		return false
	}
	at := []*node{n}
	for range r.length {
		var next []*node
		for _, n := range at {
			after, ok := n.afterRune(r.kinds, w)
			if !ok {
				return false
			}
			next = append(next, after...)
		}
		slices.SortFunc(next, func(a, b *node) int { return a.id - b.id })
		if at = slices.Compact(next); len(at) > farNodes {
			return false
		}
	}
	for _, n := range at {
		for b := range 256 {
			if r.kinds.begins(byte(b)) && n.step(byte(b), w) != n.tables.dead {
				return false
			}
		}
	}
	return true
}
