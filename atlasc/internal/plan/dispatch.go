package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/expr"
)

// Base is the model folder of the kernels that serve any model.
const Base = "base"

// SchemeName is what manifests call a scheme: SchemeQ8_0 is q8_0.
func SchemeName(k contract.Constant) string {
	return strings.ToLower(strings.TrimPrefix(k.Name, "Scheme"))
}

func (b *builder) schemeName(value int64) string {
	for _, k := range b.contract.ConstantsOf("Scheme") {
		if k.Value == value {
			return SchemeName(k)
		}
	}
	return "unknown"
}

// sets makes the base set and one per model that has manifests.
func (b *builder) sets() {
	h := b.hardware
	entries := map[string][]*Entry{}
	models := []string{Base}
	for _, t := range h.Targets {
		if !slices.Contains(models, t.Model) {
			models = append(models, t.Model)
		}
		for _, e := range t.Entries {
			if !slices.Contains(entries[t.Model], e) {
				entries[t.Model] = append(entries[t.Model], e)
			}
		}
	}
	slices.Sort(models[1:])
	for _, e := range entries[Base] {
		if e.Replace {
			b.diags.Add(e.At("replace"), "remove it", "kernel %s of the base set has nothing to replace", e.Name)
		}
	}
	for _, t := range h.Targets {
		if t.Model == Base && h.Layout(t.Quant) == nil {
			b.diags.Add(diag.Pos{File: t.Manifest.Path, Line: 1}, "add a [[layout]], and kernels for the operations with a weight", "hardware %s has no layout for weight scheme %s", h.Name, t.Quant)
		}
	}
	base := b.set(Base, entries[Base])
	h.Sets = append(h.Sets, base)
	lists := [][]*Entry{entries[Base]}
	for _, model := range models[1:] {
		merged := b.merge(model, entries[model], entries[Base])
		lists = append(lists, merged)
		set := b.set(model, merged)
		set.Ops = slices.DeleteFunc(set.Ops, func(d Dispatch) bool {
			of := base.Dispatch(d.Op.Name)
			return of != nil && slices.EqualFunc(d.Cases, of.Cases, func(x, y Case) bool {
				return slices.Equal(x.Schemes, y.Schemes) && slices.Equal(x.Branches, y.Branches)
			})
		})
		h.Sets = append(h.Sets, set)
	}
	reached := map[*Entry]bool{}
	for _, s := range h.Sets {
		for _, d := range s.Ops {
			for _, c := range d.Cases {
				for _, e := range c.Branches {
					if !reached[e] {
						reached[e] = true
						h.Entries = append(h.Entries, e)
					}
				}
			}
		}
	}
	b.unreachable(lists, reached)
}

// merge puts a model's entries before those of the base set, or in the place of the ones they replace.
func (b *builder) merge(model string, own, base []*Entry) []*Entry {
	merged := slices.Clone(base)
	var first []*Entry
	for _, e := range own {
		if slices.Contains(base, e) {
			continue // both include it
		}
		if !e.Replace {
			first = append(first, e)
			continue
		}
		i := slices.IndexFunc(merged, func(of *Entry) bool { return of.Name == e.Name })
		if i < 0 {
			names := make([]string, len(base))
			for i, e := range base {
				names[i] = e.Name
			}
			b.diags.Add(e.At("name"), diag.Suggest(e.Name, names), "model %s replaces kernel %s, which the base set of %s does not have", model, e.Name, b.hardware.Name)
			continue
		}
		merged[i] = e
	}
	return append(first, merged...)
}

// set makes the dispatch table of a list of entries.
func (b *builder) set(model string, entries []*Entry) *Set {
	s := &Set{Model: model}
	for _, op := range b.contract.Ops {
		var candidates []*Entry
		for _, e := range entries {
			if e.Op == op {
				candidates = append(candidates, e)
			}
		}
		if !op.Required && len(candidates) == 0 {
			continue
		}
		d := Dispatch{Op: op}
		switch {
		case op.Partial && len(candidates) == 0: // served nowhere
		case op.Weight() == nil:
			d.Cases = []Case{{Branches: b.branches(model, op, candidates, nil)}}
		default:
			for _, l := range b.hardware.Layouts {
				branches := b.branches(model, op, candidates, &l.Scheme)
				if op.Partial && len(branches) == 0 {
					continue
				}
				i := slices.IndexFunc(d.Cases, func(c Case) bool { return slices.Equal(c.Branches, branches) })
				if i < 0 {
					d.Cases = append(d.Cases, Case{Branches: branches})
					i = len(d.Cases) - 1
				}
				d.Cases[i].Schemes = append(d.Cases[i].Schemes, l.Scheme)
			}
		}
		s.Ops = append(s.Ops, d)
	}
	return s
}

// branches picks the entries that serve an operation for one scheme (nil where it has no weight), up to the first that
// always does, and all of its choice. Only a partial operation may do without that.
func (b *builder) branches(model string, op *contract.Struct, candidates []*Entry, scheme *contract.Constant) []*Entry {
	var branches []*Entry
	what := "operation " + op.Name
	served := false // by an entry of the last choice
	for _, e := range candidates {
		always, value := e.Unconditional(), int64(0)
		if scheme != nil {
			value = scheme.Value
		}
		if scheme != nil && e.Schemes != nil && !slices.Contains(e.Schemes, value) {
			continue
		}
		if e.When != nil {
			switch e.When.Truth(value) {
			case expr.False:
				continue
			case expr.True:
				always = len(e.Needs) == 0
			}
		}
		if served && branches[len(branches)-1].Choose != e.Choose {
			return branches
		}
		if e.cover.Empty() || slices.ContainsFunc(branches, func(before *Entry) bool { return before.takes(e) }) {
			continue
		}
		b.apart(e, branches)
		branches = append(branches, e)
		served = served || always || e.cover.Always()
		if served && e.Choose == "" {
			return branches
		}
	}
	if op.Partial || served {
		return branches
	}
	if scheme != nil {
		what += " with weight scheme " + SchemeName(*scheme)
	}
	if len(branches) == 0 {
		b.diags.Add(b.home(scheme), "add a [[kernel]] with op = \""+op.Name+"\"", "hardware %s has no kernel for %s", b.hardware.Name, what)
		return nil
	}
	last := branches[len(branches)-1]
	if model == Base || last.Model == model {
		b.diags.Add(last.At(""), "add an entry without when and needs after it", "the last kernel of %s for %s, %s, has a condition", b.hardware.Name, what, last.Name)
	}
	return branches
}

// takes tells whether an entry that comes first leaves nothing to another one.
func (e *Entry) takes(other *Entry) bool {
	return (e.Choose == "" || e.Choose != other.Choose) && (e.Unconditional() || e.cover.Covers(other.cover))
}

// apart reports an entry of a choice whose others do not stand right before it.
func (b *builder) apart(e *Entry, before []*Entry) {
	i := slices.IndexFunc(before, func(other *Entry) bool { return other.Choose == e.Choose })
	if e.Choose != "" && i >= 0 && before[len(before)-1].Choose != e.Choose {
		b.diags.Add(e.At("choose"), "move it there, or give it another name", "kernel %s is of choice %q, which began with %s at %s and ended with other entries", e.Name, e.Choose, before[i].Name, before[i].At(""))
	}
}

// home is where a missing kernel belongs: the manifest of its scheme, else the first of the hardware.
func (b *builder) home(scheme *contract.Constant) diag.Pos {
	for _, l := range b.hardware.Layouts {
		if scheme != nil && l.Scheme == *scheme {
			return l.At("")
		}
	}
	for _, t := range b.hardware.Targets {
		if t.Model == Base {
			return diag.Pos{File: t.Manifest.Path, Line: 1}
		}
	}
	return diag.Pos{File: "targets/" + b.hardware.File, Line: 1}
}

// unreachable reports entries that are in no table of the hardware, and comparisons that are always the same. lists are the
// entries of its sets, each in the order in which they are tried.
func (b *builder) unreachable(lists [][]*Entry, reached map[*Entry]bool) {
	seen := map[*Entry]bool{}
	for _, entries := range lists {
		for i, e := range entries {
			if seen[e] {
				continue
			}
			seen[e] = true
			other, mentioned := otherScheme(e)
			switch {
			case mentioned:
				b.diags.Add(e.At("when"), "remove the comparison", "kernel %s is not for weight scheme %s, which its condition mentions", e.Name, b.schemeName(other))
			case reached[e]:
			case e.cover.Empty() || b.never(e):
				b.diags.Add(e.At("when"), "remove the entry or correct its condition", "the condition of kernel %s never holds", e.Name)
			default:
				b.diags.Add(e.At(""), "remove it or move it up", "kernel %s is never reached: %s all that it would", e.Name, inPlaceOf(e, entries[:i], reached))
			}
		}
	}
}

// inPlaceOf says which of the entries before one serve what it would.
func inPlaceOf(e *Entry, before []*Entry, reached map[*Entry]bool) string {
	for _, other := range before {
		schemes := other.Schemes == nil || e.Schemes != nil && !slices.ContainsFunc(e.Schemes, func(s int64) bool { return !slices.Contains(other.Schemes, s) })
		if other.Op == e.Op && reached[other] && schemes && other.takes(e) {
			return fmt.Sprintf("%s at %s serves", other.Name, other.At(""))
		}
	}
	return "entries before it serve"
}

// otherScheme is a scheme that an entry's condition mentions though the entry does not serve it.
func otherScheme(e *Entry) (int64, bool) {
	if e.When == nil || e.Schemes == nil {
		return 0, false
	}
	mentioned := e.When.Schemes()
	i := slices.IndexFunc(mentioned, func(s int64) bool { return !slices.Contains(e.Schemes, s) })
	if i < 0 {
		return 0, false
	}
	return mentioned[i], true
}

// never tells whether an entry's condition is false for every scheme that it may serve.
func (b *builder) never(e *Entry) bool {
	if e.When == nil {
		return false
	}
	if e.Op.Weight() == nil {
		return e.When.Truth(0) == expr.False
	}
	return !slices.ContainsFunc(b.hardware.Layouts, func(l Layout) bool {
		serves := e.Schemes == nil || slices.Contains(e.Schemes, l.Scheme.Value)
		return serves && e.When.Truth(l.Scheme.Value) != expr.False
	})
}
