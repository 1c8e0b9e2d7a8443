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
	var all kinds
	for k := kinds(1); k < anyText; k <<= 1 {
		if t.regexes.Run(r, t.character(all|k)) > 0 {
			all |= k
		}
	}
	if all == 0 {
		return run{}
	}
	return run{all, min(t.regexes.Run(r, t.character(all)), endless)}
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
	for k := kinds(1); k < anyText; k <<= 1 {
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

// afterRune are the nodes behind one character of some kinds. It is false where some character may not come.
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
		lo, hi := 0x80, 0xBF
		if from.shape == atStart {
			lo, hi = 0, 0x7F
			if k&foreign != 0 {
				hi = 0xF4
			}
			if k == foreign {
				lo = 0x80
			}
		}
		for b := lo; b <= hi; b++ {
			if kindOf(byte(b))&k == 0 && from.shape == atStart {
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

// stays reports whether the node does the same behind every character of some kinds, as far as near tokens go.
func (n *node) stays(k kinds, w *work) bool {
	short := n.shorten(w)
	if short == nil {
		return false
	}
	after, ok := n.afterRune(k, w)
	return ok && !slices.ContainsFunc(after, func(next *node) bool { return next.shorten(w) != short })
}
