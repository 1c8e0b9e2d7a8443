package match

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// endless is a run without an end.
const endless = manyRunes

// farNodes is how many nodes are looked through for a run that the expressions do not tell.
const farNodes = 4

// run is a number of characters of an alphabet that may come one behind the other, whichever they are. Mostly there is no larger one.
func (n *node) run(alphabet int, w *work) int {
	shift := uint(alphabet % 8 * 8)
	word := &n.runs[alphabet/8]
	if known := uint8(word.Load() >> shift); known != 0 {
		return int(known - 1)
	}
	run := n.findRun(alphabet, w)
	if w.err != nil {
		return 0
	}
	word.Or(uint64(run+1) << shift)
	return run
}

func (n *node) findRun(alphabet int, w *work) int {
	run := n.tables.run(n.at, alphabet)
	if run > 0 || !w.spend(len(n.at)) {
		return run
	}
	return n.nearRun(alphabet, w)
}

// run is the run that the expressions tell.
func (t *tables) run(at []position, alphabet int) int {
	t.lock.Lock()
	defer t.lock.Unlock()
	run := 0
	for _, p := range at {
		for _, o := range p.lexer.open {
			run = max(run, t.regexes.Run(o.rest, t.alphabets[alphabet]))
		}
	}
	if run == regex.Endless {
		return endless
	}
	return min(run, endless-1)
}

// nearRun is the run that nodes near by tell, as with rules that repeat a character.
func (n *node) nearRun(alphabet int, w *work) int {
	seen := []*node{n}
	level := 0
	for from := 0; from < len(seen); level++ {
		end := len(seen)
		if end > farNodes {
			return level
		}
		for ; from < end; from++ {
			after, ok := seen[from].afterRune(alphabet, w)
			if !ok {
				return level
			}
			for _, next := range after {
				if !slices.Contains(seen, next) {
					seen = append(seen, next)
				}
			}
		}
	}
	return endless
}

// afterRune are the nodes behind one character of an alphabet. It is false where some character may not come.
func (n *node) afterRune(alphabet int, w *work) ([]*node, bool) {
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
			if alphabets[alphabet].more {
				hi = 0xF4
			}
		}
		for b := lo; b <= hi; b++ {
			if b < 0x80 && !alphabets[alphabet].ascii[b] {
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

// stays reports whether the node does the same behind every character of an alphabet, as far as near tokens go.
func (n *node) stays(alphabet int, w *work) bool {
	short := n.shorten(w)
	if short == nil {
		return false
	}
	after, ok := n.afterRune(alphabet, w)
	return ok && !slices.ContainsFunc(after, func(next *node) bool { return next.shorten(w) != short })
}
