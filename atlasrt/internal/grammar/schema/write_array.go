package schema

import (
	"encoding/binary"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

func (w *writer) array(a *array) rules.Symbol {
	b := w.rules
	var items rules.Symbol
	switch {
	case a.unique && (a.max == unbounded || a.max > 1):
		items = w.uniqueItems(a)
	case len(a.contains) > 0:
		items = w.countedItems(a)
	default:
		items = w.items(a, 0)
	}
	return b.Sequence(b.Match(w.openArray), items, b.Match(w.closeArray))
}

// before is what stands before an item or a member: of the first one, or of another.
func (w *writer) before(first bool) rules.Symbol {
	if first {
		return w.rules.Match(w.first)
	}
	return w.rules.Match(w.comma)
}

// items is the items of an array from a place on.
func (w *writer) items(a *array, from int) rules.Symbol {
	b := w.rules
	most := a.max
	rest := w.value(a.rest.value)
	n := len(a.prefix)
	var tail rules.Symbol
	if from >= n {
		n = from
	}
	least, more := max(a.min-n, 0), unbounded
	if most != unbounded {
		more = max(most-n, 0)
	}
	tail = w.repeat(rest, n == 0, least, more)
	for i := n - 1; i >= from; i-- {
		if most != unbounded && i >= most {
			tail = rules.Empty
			continue
		}
		taken := b.Sequence(w.before(i == 0), w.value(a.prefix[i].value), tail)
		if i >= a.min {
			taken = b.Optional(taken)
		}
		tail = taken
	}
	return tail
}

// repeat is a part several times, from the first on or behind others.
func (w *writer) repeat(part rules.Symbol, first bool, least, most int) rules.Symbol {
	b := w.rules
	if !first {
		return b.Repeat(b.Sequence(w.before(false), part), rules.Empty, least, most)
	}
	if most == 0 {
		return rules.Empty
	}
	some := b.Sequence(w.before(true), b.Repeat(part, w.before(false), max(least, 1), most))
	if least == 0 {
		return b.Optional(some)
	}
	return some
}

// mostStates bounds the states of arrays whose items are counted by kind, and of objects whose properties are.
const mostStates = 4096

// counter writes arrays of which items of some kinds are counted.
type counter struct {
	*writer
	array  *array
	cap    int // places from this one on are alike, or there is none
	states map[string]rules.Symbol
}

func (w *writer) countedItems(a *array) rules.Symbol {
	if len(a.contains) > 4 {
		w.unsupported("contains", "at most 4 kinds of items can be counted in one array")
		return rules.Nothing
	}
	k := &counter{writer: w, array: a, cap: max(len(a.prefix), a.min, 1), states: map[string]rules.Symbol{}}
	for _, kind := range a.contains {
		k.cap = max(k.cap, kind.from)
	}
	if a.max != unbounded {
		k.cap = a.max
	}
	if k.cap > mostStates {
		w.unsupported("contains", "beside minItems or maxItems above "+strconv.Itoa(mostStates)+" it cannot be counted")
		return rules.Nothing
	}
	return k.state(0, make([]int, len(a.contains)))
}

// state is the items from a place on, with so many of each kind before.
func (k *counter) state(place int, counts []int) rules.Symbol {
	key := binary.AppendUvarint(nil, uint64(place))
	done, ended := true, place >= k.array.min
	for i, n := range counts {
		key = binary.AppendUvarint(key, uint64(n))
		kind := k.array.contains[i]
		done = done && n >= kind.min && kind.max == unbounded
		ended = ended && n >= kind.min
	}
	if s, known := k.states[string(key)]; known || k.err != nil {
		return s
	}
	if len(k.states) > mostStates {
		k.unsupported("contains", "its counts have too many combinations: lower minContains, maxContains, minItems or maxItems")
		return rules.Nothing
	}
	if done {
		s := k.items(k.array, place)
		k.states[string(key)] = s
		return s
	}
	b := k.rules
	s := b.Declare("")
	k.states[string(key)] = s
	if k.array.max != unbounded && place >= k.array.max {
		if ended {
			b.Define(s, rules.Empty)
		}
		return s
	}
	next := place + 1
	if k.array.max == unbounded {
		next = min(next, k.cap)
	}
	var ways []rules.Symbol
	if ended {
		ways = append(ways, rules.Empty)
	}
	var loops []rules.Symbol
	k.choose(0, k.array.item(place).value, place, counts, func(value node, after []int) {
		item := b.Sequence(k.before(place == 0), k.value(value))
		switch {
		case item == rules.Nothing:
		case next == place && place > 0 && equal(counts, after):
			loops = append(loops, item)
		default:
			ways = append(ways, b.Sequence(item, k.state(next, after)))
		}
	})
	if len(loops) > 0 {
		b.Define(s, b.Sequence(b.Repeat(b.Either(loops...), rules.Empty, 0, unbounded), b.Either(ways...)))
	} else {
		b.Define(s, ways...)
	}
	return s
}

// choose takes every way in which an item can be of the kinds from one on, or not.
func (k *counter) choose(kind int, value node, place int, counts []int, take func(node, []int)) {
	if kind == len(counts) {
		take(value, counts)
		return
	}
	if value == never {
		return
	}
	of, n := k.array.contains[kind], counts[kind]
	counted := place >= of.from
	full := of.max == unbounded && n >= of.min
	if !counted || full {
		k.choose(kind+1, value, place, counts, take)
		return
	}
	if of.max == unbounded || n < of.max {
		more := append([]int(nil), counts...)
		more[kind]++
		k.choose(kind+1, k.both(value, of.value), place, more, take)
	}
	if of.max != unbounded {
		value = k.both(value, k.not(of.value))
	}
	k.choose(kind+1, value, place, counts, take)
}

func equal(a, b []int) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// mostUnique bounds the different items of an array of unique ones: what was used is a state.
const mostUnique = 8

// uniqueItems is the items of an array without two equal ones, where few values are possible.
func (w *writer) uniqueItems(a *array) rules.Symbol {
	refuse := func() rules.Symbol {
		w.at.path = a.place
		w.unsupported("uniqueItems", "items can be kept from being equal only where they are of at most "+strconv.Itoa(mostUnique)+
			" values (an enum), or maxItems is 1: leave uniqueItems out and check the answer")
		return rules.Nothing
	}
	if len(a.contains) > 0 {
		return refuse()
	}
	bits := map[node]int{}
	var values []node
	allowed := make([][]int, 0, len(a.prefix)+1)
	for _, e := range append(a.prefix[:len(a.prefix):len(a.prefix)], a.rest) {
		list, ok := w.listed(w.read(e.value))
		if !ok {
			return refuse()
		}
		var at []int
		for _, v := range list {
			if _, known := bits[v]; !known {
				bits[v] = len(values)
				values = append(values, v)
			}
			at = append(at, bits[v])
		}
		if allowed = append(allowed, at); len(values) > mostUnique {
			return refuse()
		}
	}
	b := w.rules
	states := map[int]rules.Symbol{}
	var state func(used, place int) rules.Symbol
	state = func(used, place int) rules.Symbol {
		if s, known := states[used]; known {
			return s
		}
		var ways []rules.Symbol
		if place >= a.min {
			ways = append(ways, rules.Empty)
		}
		if a.max == unbounded || place < a.max {
			for _, bit := range allowed[min(place, len(a.prefix))] {
				if used>>bit&1 == 0 {
					ways = append(ways, b.Sequence(w.before(place == 0), w.value(values[bit]), state(used|1<<bit, place+1)))
				}
			}
		}
		s := b.Either(ways...)
		states[used] = s
		return s
	}
	return state(0, 0)
}

// listed is the values of a set that has few, all of them scalars.
func (c *compiler) listed(v *set) (values []node, ok bool) {
	if !v.scalar() || v.number.any || !v.number.none() && len(v.number.finite) == 0 || v.text != nil && v.text.kind != words {
		return nil, false
	}
	if v.null {
		values = append(values, c.constant(jsontree.Null{}))
	}
	if v.no {
		values = append(values, c.constant(jsontree.Bool(false)))
	}
	if v.yes {
		values = append(values, c.constant(jsontree.Bool(true)))
	}
	for _, d := range v.number.finite {
		values = append(values, c.constant(jsontree.Number(d.plain())))
	}
	if v.text != nil {
		for _, word := range v.text.words {
			values = append(values, c.constant(jsontree.String(word)))
		}
	}
	return values, true
}
