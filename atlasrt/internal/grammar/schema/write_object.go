package schema

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/regex"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/rules"
)

func (w *writer) object(o *object) rules.Symbol {
	b := w.rules
	var bodies []rules.Symbol
	for _, v := range w.meetByFields(o) {
		bodies = append(bodies, w.members(v))
	}
	return b.Sequence(b.Match(w.openObject), b.Either(bodies...), b.Match(w.closeObject))
}

// meetByFields is o once for every way in which its demands can be met by fields or by other properties. What is left of the demands is about
// other properties.
func (w *writer) meetByFields(o *object) []*object {
	variants := []*object{{fields: o.fields, rest: o.rest, min: o.min, max: o.max}}
	for _, d := range o.demands {
		var next []*object
		for _, v := range variants {
			for i, f := range v.fields {
				if !w.matches(d.keys, f.name) || w.both(f.value, d.value) == never {
					continue
				}
				met := *v
				met.fields = slices.Clone(v.fields)
				met.fields[i].required, met.fields[i].value = true, w.both(f.value, d.value)
				next = append(next, &met)
			}
			other := *v
			other.demands = append(v.demands[:len(v.demands):len(v.demands)], d)
			next = append(next, &other)
			if !w.spend(len(v.fields)) {
				return nil
			}
		}
		variants = next
	}
	return variants
}

// mostWanted bounds the properties that must come, in any order, among those that the schema does not describe.
const mostWanted = 6

// body writes the members of objects: fields in their order, each once at most, then others.
type body struct {
	*writer
	object  *object
	fields  []field
	wanted  []wanted                   // members that must come among the others
	others  map[regex.Ref]rules.Symbol // any other member, by what stands before it
	rest    []regionForm               // what others are
	missing int                        // bits of what is wanted
	least   int                        // members
	most    int
	cap     int // members are counted up to it
	states  map[bodyState]rules.Symbol
}

// wanted is a member that must come, or that meets several demands at once.
type wanted struct {
	which  int // bits of what it meets
	member func(before regex.Ref) rules.Symbol
}

type bodyState struct{ field, count, missing int }

func (w *writer) members(o *object) rules.Symbol {
	m := &body{writer: w, object: o, least: o.min, most: o.max, cap: 1, states: map[bodyState]rules.Symbol{}, others: map[regex.Ref]rules.Symbol{}}
	var loose []field
	required := 0
	for _, f := range o.fields {
		if f.required {
			required++
		}
		switch {
		case f.value == never && !f.required:
		case f.value == never:
			return rules.Nothing
		case f.loose && !w.sorted:
			loose = append(loose, f)
		default:
			m.fields = append(m.fields, f)
		}
	}
	if len(loose)+len(o.demands) > mostWanted {
		m.fields, loose = append(m.fields, loose...), nil
	}
	if w.sorted {
		slices.SortStableFunc(m.fields, byName)
	}
	for i, f := range loose {
		m.wanted = append(m.wanted, wanted{1 << i, func(before regex.Ref) rules.Symbol { return m.field(before, f) }})
	}
	if m.missing = 1<<(len(loose)+len(o.demands)) - 1; m.missing >= 1<<mostWanted {
		w.unsupported("not", "too many properties must come that it does not name")
		return rules.Nothing
	}
	unnamed := notTexts(o.named())
	for choice := 1; choice < 1<<len(o.demands); choice++ {
		keys, value := anyText, always
		for i, d := range o.demands {
			if choice>>i&1 == 1 {
				keys, value = w.bothTexts(keys, d.keys), w.both(value, d.value)
			}
		}
		if regions := m.regions(unnamed, keys, value); len(regions) > 0 {
			m.wanted = append(m.wanted, wanted{choice << len(loose), func(before regex.Ref) rules.Symbol { return m.region(before, regions) }})
		}
	}
	m.rest = m.regions(unnamed, anyText, always)
	must := required + min(len(o.demands), 1)
	counted := o.min > must || o.max != unbounded && (len(m.rest) > 0 || len(m.fields)+len(loose)+len(o.demands) > o.max)
	switch {
	case !counted:
		m.least, m.most = 0, unbounded
	case o.max != unbounded:
		m.cap = o.max
	default:
		m.cap = max(o.min, 1)
	}
	if counted && len(m.fields)+m.missing > 0 && len(m.fields)+m.missing > mostStates*16/max(m.cap, 1) {
		w.unsupported("minProperties", "beside so many properties it cannot be counted, nor can maxProperties")
		return rules.Nothing
	}
	return m.from(0, 0)
}

type regionForm struct {
	keys  regex.Ref
	value node
}

// regions is the other properties that have some keys and values.
func (m *body) regions(unnamed, keys *texts, value node) (forms []regionForm) {
	for _, r := range m.object.rest {
		within := m.bothTexts(m.bothTexts(r.keys, keys), unnamed)
		v := m.both(r.value, value)
		if v == never || !m.someText(within) {
			continue
		}
		forms = append(forms, regionForm{m.keysOf(within), v})
	}
	return forms
}

// keysOf is how some names are written as keys.
func (m *body) keysOf(names *texts) regex.Ref {
	if names == anyText {
		return m.freeKey
	}
	return m.keys(m.rules.Regexes.And(m.spelled(m.spell, names), m.within))
}

func (m *body) region(before regex.Ref, forms []regionForm) rules.Symbol {
	ways := make([]rules.Symbol, 0, len(forms))
	for _, f := range forms {
		ways = append(ways, m.entry(before, f.keys, "", f.value))
	}
	return m.rules.Either(ways...)
}

// other is any other member.
func (m *body) other(before regex.Ref) rules.Symbol {
	s, known := m.others[before]
	if !known {
		s = m.region(before, m.rest)
		m.others[before] = s
	}
	return s
}

func (m *body) field(before regex.Ref, f field) rules.Symbol {
	return m.entry(before, m.key(f.name), f.name, f.value)
}

// entry is a member behind what stands before it.
func (m *body) entry(before, key regex.Ref, name string, value node) rules.Symbol {
	if m.member != nil {
		return m.member(before, key, name, value)
	}
	b := m.rules
	return b.Sequence(b.Match(b.Regexes.Concat(before, key, m.colon)), m.value(value))
}

func (m *body) separator(count int) regex.Ref {
	if count == 0 {
		return m.first
	}
	return m.comma
}

// after is the count behind one more member; false: there may be none.
func (m *body) after(count int) (int, bool) {
	if m.most != unbounded && count >= m.most {
		return 0, false
	}
	return min(count+1, m.cap), true
}

// from is the members from a field on, behind so many.
func (m *body) from(first, count int) rules.Symbol {
	// Backwards, so that a long list of fields is no deep recursion.
	required := make([]int, len(m.fields)+1)
	for i, f := range m.fields {
		required[i+1] = required[i] + one(f.required)
	}
	for i := len(m.fields); i > first; i-- {
		for n := min(required[i], m.cap); n <= min(i, m.cap); n++ {
			m.fieldsFrom(i, n)
		}
	}
	return m.fieldsFrom(first, count)
}

func (m *body) fieldsFrom(i, count int) rules.Symbol {
	state := bodyState{i, count, 0}
	if s, known := m.states[state]; known {
		return s
	}
	b := m.rules
	var s rules.Symbol
	if i == len(m.fields) {
		s = m.behind(count, m.missing)
	} else {
		s = rules.Nothing
		f := m.fields[i]
		if next, ok := m.after(count); ok {
			s = b.Sequence(m.field(m.separator(count), f), m.fieldsFrom(i+1, next))
		}
		if !f.required {
			s = b.Either(s, m.fieldsFrom(i+1, count))
		}
	}
	m.states[state] = s
	return s
}

// behind is the members behind the fields; missing is those that must still come.
func (m *body) behind(count, missing int) rules.Symbol {
	b := m.rules
	if missing == 0 {
		least, most := max(m.least-count, 0), unbounded
		if m.most != unbounded {
			most = m.most - count
		}
		if count > 0 {
			return b.Repeat(m.other(m.comma), rules.Empty, least, most)
		}
		if most == 0 || m.other(m.first) == rules.Nothing {
			return b.Repeat(rules.Nothing, rules.Empty, least, most)
		}
		fewer := most
		if most != unbounded {
			fewer = most - 1
		}
		some := b.Sequence(m.other(m.first), b.Repeat(m.other(m.comma), rules.Empty, max(least-1, 0), fewer))
		if least == 0 {
			return b.Optional(some)
		}
		return some
	}
	state := bodyState{len(m.fields), count, missing}
	if s, known := m.states[state]; known {
		return s
	}
	s := b.Declare("")
	m.states[state] = s
	next, ok := m.after(count)
	if !ok {
		return s
	}
	var ways []rules.Symbol
	for _, want := range m.wanted {
		if missing&want.which == want.which {
			ways = append(ways, b.Sequence(want.member(m.separator(count)), m.behind(next, missing&^want.which)))
		}
	}
	switch other := m.other(m.separator(count)); {
	case next != count:
		ways = append(ways, b.Sequence(other, m.behind(next, missing)))
		b.Define(s, ways...)
	default:
		b.Define(s, b.Sequence(b.Repeat(other, rules.Empty, 0, unbounded), b.Either(ways...)))
	}
	return s
}
