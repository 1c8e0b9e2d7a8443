package match

import (
	"encoding/binary"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
)

// lexer is where a text is in the terminals that a row expects: for each that may still match, the expression of what may follow. Rows that
// are in the same place of the same terminals share it.
type lexer struct {
	id      int32
	open    []open
	classes *regex.Classes // of bytes that do the same
	heads   [][]open       // by class: those of open that may go on by it; nil where open is short
	next    []*reading     // by class; nil: not made yet
	short   *lexer         // the same for near tokens; nil: not made yet
	trim    *trim          // how the lexer's tokens are told from those of another one; nil: not looked for yet
}

// open is a terminal that may go on.
type open struct {
	terminal int32
	rest     regex.Ref
}

// reading is what becomes of a lexer by a byte.
type reading struct {
	lexer *lexer  // of the terminals that may go on
	ends  []int32 // terminals that may end
}

// beginning is the lexer before the first byte of some terminals.
func (t *tables) beginning(terminals []int32) *lexer {
	all := make([]open, len(terminals))
	for at, terminal := range terminals {
		all[at] = open{terminal, t.terminals[terminal]}
	}
	return t.lexer(all)
}

// lexer is the one lexer of some open terminals.
func (t *tables) lexer(all []open) *lexer {
	key := t.key[:0]
	for _, o := range all {
		key = binary.LittleEndian.AppendUint32(key, uint32(o.terminal))
		key = binary.LittleEndian.AppendUint32(key, uint32(o.rest))
	}
	t.key = key
	if known := t.lexers[string(key)]; known != nil {
		return known
	}
	made := &lexer{id: int32(len(t.lexers)), open: all}
	t.lexers[string(key)] = made
	t.bytes += 200 + 40*len(all)
	return made
}

// partition fills the classes of a lexer.
func (t *tables) partition(l *lexer, w *work) {
	if l.classes != nil || !w.spend(len(l.open)) {
		return
	}
	l.classes = t.classes(position{lexer: l})
	l.next = make([]*reading, l.classes.Count())
	t.bytes += 8 * l.classes.Count()
	if len(l.open) < manyOpen {
		return
	}
	l.heads = make([][]open, l.classes.Count())
	for _, o := range l.open {
		first := t.regexes.First(o.rest)
		if b, only := first.Only(); only {
			class := l.classes.Of[b]
			l.heads[class] = append(l.heads[class], o)
			continue
		}
		for class, b := range l.classes.Members {
			if first.Has(b) {
				l.heads[class] = append(l.heads[class], o)
			}
		}
	}
	t.bytes += 16 * len(l.open)
}

// manyOpen is a number of open terminals from which on they are kept by the bytes with which they go on.
const manyOpen = 8

// classes are the classes of bytes that do the same at each of some positions.
func (t *tables) classes(at ...position) *regex.Classes {
	refs := t.refs[:0]
	var cuts []*regex.Classes
	for _, p := range at {
		for _, o := range p.lexer.open {
			cut := t.regexes.Classes(o.rest)
			if !slices.Contains(cuts, cut) {
				cuts = append(cuts, cut)
				refs = append(refs, o.rest)
			}
		}
	}
	t.refs = refs[:0]
	return t.regexes.Classes(refs...)
}

// read is what becomes of a lexer by a byte. It is nil where the work is over its limits.
func (t *tables) read(l *lexer, b byte, w *work) *reading {
	t.partition(l, w)
	if w.err != nil {
		return nil
	}
	class := l.classes.Of[b]
	if l.next[class] != nil {
		return l.next[class]
	}
	made := &reading{}
	var rest []open
	all := l.open
	if l.heads != nil {
		all = l.heads[class]
	}
	for _, o := range all {
		if !w.spend(1) {
			return nil
		}
		r := t.regexes.Derive(o.rest, b)
		if t.regexes.Nullable(r) {
			made.ends = append(made.ends, o.terminal)
		}
		if r == regex.Nothing || r == regex.Empty {
			continue
		}
		if t.mayEnd(r) {
			rest = append(rest, open{o.terminal, r})
		}
	}
	made.lexer = t.lexer(rest)
	l.next[class] = made
	t.bytes += 64 + 4*len(made.ends)
	return made
}

// mayEnd reports whether some text matches an expression. Where that takes too much work to tell it is taken to be so: a text may then come to a
// place where nothing may follow.
func (t *tables) mayEnd(r regex.Ref) bool {
	if t.unsure[r] {
		return true
	}
	alive, err := t.regexes.Alive(r)
	if err != nil {
		t.unsure[r] = true
	}
	return alive || err != nil
}

// aliveBudget is how many derivatives mayEnd looks at.
const aliveBudget = 1 << 15

// shorten is a lexer that does the same with texts of up to nearBytes, and whose counts are as small as may be.
func (t *tables) shorten(l *lexer) *lexer {
	if l.short != nil {
		return l.short
	}
	short := make([]open, len(l.open))
	for at, o := range l.open {
		short[at] = open{o.terminal, t.regexes.Shorten(o.rest, nearBytes)}
	}
	l.short = t.lexer(short)
	return l.short
}
