package judge

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/match"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// mostTries bounds the search of an order, in members.
const mostTries = 200_000

// orders looks for an order of the properties of a value in which it is accepted: objects have none, and grammars have the schema's.
type orders struct {
	schema     []byte // its text, of which the order is mostly right
	separators jsontree.Separators
	tries      int              // left
	failed     map[attempt]bool // what does not lead on
}

// attempt is a place in the value: a state with some members of an object to come.
type attempt struct {
	object *jsontree.Object
	state  match.State
	rest   string
}

// accepted tells whether there is such an order. It may miss one where a schema offers very many.
func (o *orders) accepted(start match.State, v jsontree.Value) bool {
	return o.value(start, v, match.State.Done)
}

// value goes on with then behind a value, in all orders until one succeeds.
func (o *orders) value(s match.State, v jsontree.Value, then func(match.State) bool) bool {
	switch v := v.(type) {
	case jsontree.Array:
		return o.items(s, "[", v, then)
	case *jsontree.Object:
		var members []string
		for name := range v.All() {
			members = append(members, name)
		}
		slices.SortStableFunc(members, func(a, b string) int { return cmp.Compare(o.place(a), o.place(b)) })
		return o.members(s, "{", v, members, then)
	}
	return text(s, string(jsontree.AppendDumps(nil, v, o.separators)), then)
}

func (o *orders) items(s match.State, before string, rest jsontree.Array, then func(match.State) bool) bool {
	if len(rest) == 0 {
		if before == "[" {
			return text(s, "[]", then)
		}
		return text(s, "]", then)
	}
	return text(s, before, func(s match.State) bool {
		return o.value(s, rest[0], func(s match.State) bool { return o.items(s, o.separators.Comma, rest[1:], then) })
	})
}

func (o *orders) members(s match.State, before string, object *jsontree.Object, rest []string, then func(match.State) bool) bool {
	if len(rest) == 0 {
		if before == "{" {
			return text(s, "{}", then)
		}
		return text(s, "}", then)
	}
	at := attempt{object, s, strings.Join(rest, "\x00")}
	if o.failed[at] {
		return false
	}
	for i, name := range rest {
		if o.tries--; o.tries < 0 {
			return false
		}
		v, _ := object.Get(name)
		key := string(jsontree.AppendString([]byte(before), name)) + o.separators.Colon
		if text(s, key, func(s match.State) bool {
			return o.value(s, v, func(s match.State) bool {
				return o.members(s, o.separators.Comma, object, slices.Delete(slices.Clone(rest), i, i+1), then)
			})
		}) {
			return true
		}
	}
	o.failed[at] = true
	return false
}

// place is where a name stands in the schema; names that do not come last.
func (o *orders) place(name string) int {
	if at := bytes.Index(o.schema, append(jsontree.AppendString(nil, name), ':')); at >= 0 {
		return at
	}
	return len(o.schema)
}

func text(s match.State, t string, then func(match.State) bool) bool {
	end, n := s.NextBytes([]byte(t))
	return n == len(t) && then(end)
}
