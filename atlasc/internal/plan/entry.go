package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/expr"
	"github.com/atlas-inference/atlas/atlasc/internal/manifest"
)

// hardware plans one kind of processor.
func (m *maker) hardware(h *Hardware) *Hardware {
	b := builder{maker: m, hardware: h, entries: map[*manifest.Kernel]*Entry{}, shared: map[*contract.Struct][2]*expr.Scope{}}
	before := len(m.diags)
	for i := range h.Targets {
		b.target(&h.Targets[i])
	}
	slices.SortFunc(h.Layouts, func(x, y Layout) int { return int(x.Scheme.Value - y.Scheme.Value) })
	b.names()
	b.layouts()
	for _, name := range h.Runtime {
		m.exists(diag.Pos{File: "targets/" + h.File, Line: h.Line("runtime")}, name)
	}
	if len(m.diags) == before && !b.unsound {
		b.sets() // what is missing or never reached can only be told where all entries are sound
	}
	return h
}

// builder plans one hardware.
type builder struct {
	*maker
	hardware *Hardware
	entries  map[*manifest.Kernel]*Entry // an entry that several manifests include is one entry
	shared   map[*contract.Struct][2]*expr.Scope
	unsound  bool // a manifest has findings of form
}

// target reads the entries of one target.
func (b *builder) target(t *Target) {
	for _, v := range b.visits(*t) {
		b.unsound = b.unsound || b.malformed[v.manifest]
		b.checkScheme(v.manifest.At("scheme"), v.manifest.Scheme)
		for i := range v.manifest.Layouts {
			b.layout(&v.manifest.Layouts[i], v.scheme, t.Model)
		}
		for i := range v.manifest.Kernels {
			if e := b.entry(&v.manifest.Kernels[i], v.scheme, t.Model); e != nil {
				t.Entries = append(t.Entries, e)
			}
		}
	}
}

// scheme finds a scheme's constant by the name that manifests use.
func (b *builder) scheme(name string) (contract.Constant, bool) {
	for _, k := range b.contract.ConstantsOf("Scheme") {
		if SchemeName(k) == name {
			return k, true
		}
	}
	return contract.Constant{}, false
}

// checkScheme reports a scheme that package op does not have.
func (b *builder) checkScheme(at diag.Pos, name string) {
	if _, ok := b.scheme(name); ok || name == "" {
		return
	}
	var known []string
	for _, k := range b.contract.ConstantsOf("Scheme") {
		known = append(known, SchemeName(k))
	}
	b.diags.Add(at, diag.Suggest(name, known), "weight scheme %q is unknown", name)
}

func (b *builder) layout(l *manifest.Layout, scheme, model string) {
	if slices.ContainsFunc(b.hardware.Layouts, func(known Layout) bool { return known.Layout == l }) {
		return
	}
	if l.Scheme != "" {
		scheme = l.Scheme
	}
	if scheme == "" {
		b.diags.Add(l.At(""), "add it, or a scheme to the manifest", "layout %s has no scheme", l.Name)
		return
	}
	if model != Base {
		b.diags.Add(l.At(""), "move it to a base manifest", "layout %s in a manifest of model %s: a hardware has one layout per scheme", l.Name, model)
		return
	}
	b.checkScheme(l.At("scheme"), l.Scheme)
	k, ok := b.scheme(scheme)
	if !ok {
		return
	}
	for _, other := range b.hardware.Layouts {
		if other.Scheme == k {
			b.diags.Add(l.At(""), "remove one", "a second layout of scheme %s; the first is at %s", scheme, other.At(""))
			return
		}
	}
	size, err := expr.SizeScope().Int(l.Bytes)
	b.report(l.At("bytes"), err)
	b.hardware.Layouts = append(b.hardware.Layouts, Layout{l, k, size})
}

// report turns the errors of an expression into findings and tells whether there were any.
func (b *builder) report(at diag.Pos, err error) bool {
	if err == nil {
		return false
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			b.report(at, err)
		}
		return true
	}
	var e *expr.Error
	if errors.As(err, &e) {
		b.diags.Add(at, e.Hint, "%s", e.Msg)
	}
	return true
}

// entry checks a kernel of a manifest. An entry that was there before serves this scheme as well.
func (b *builder) entry(k *manifest.Kernel, scheme, model string) *Entry {
	op := b.contract.Op(k.Op)
	if op == nil {
		if k.Op != "" {
			b.diags.Add(k.At("op"), diag.Suggest(k.Op, b.contract.Names()), "package op has no operation %q", k.Op)
		}
		return nil
	}
	e := b.entries[k]
	if e == nil {
		e = &Entry{Kernel: k, ID: k.Name, Op: op, Model: model}
		if k.Replace {
			e.ID = Identifier(model) + "_" + k.Name
		}
		b.entries[k] = e
		b.expressions(e)
		b.exists(k.At("body"), k.Body)
	}
	if constant, ok := b.scheme(scheme); ok && op.Weight() != nil && !slices.Contains(e.Schemes, constant.Value) {
		e.Schemes = append(e.Schemes, constant.Value)
		slices.Sort(e.Schemes)
	}
	return e
}

// exists reports a file under kernels/ that is not there.
func (m *maker) exists(at diag.Pos, name string) {
	if name == "" {
		return
	}
	if !fs.ValidPath(name) || !plainPath.MatchString(name) {
		m.diags.Add(at, "write it relative to kernels/", "file name %q leads out of kernels, or has odd characters", name)
		return
	}
	if info, err := fs.Stat(m.tree, path.Join(Kernels, name)); err != nil || info.IsDir() {
		m.diags.Add(at, "names are relative to kernels/", "there is no file %s", path.Join(Kernels, name))
	}
}

// expressions checks an entry's features, condition, cost, scratch and grids.
func (b *builder) expressions(e *Entry) {
	features := slices.Sorted(maps.Keys(b.hardware.Features))
	for _, need := range e.Needs {
		if _, ok := b.hardware.Features[need]; !ok {
			b.diags.Add(e.At("needs"), diag.Suggest(need, features), "hardware %s has no feature %q", b.hardware.Name, need)
		}
	}
	condition, size := b.scopes(e, features)
	var err error
	if e.Kernel.When != "" {
		e.When, err = condition.Bool(e.Kernel.When)
		b.report(e.At("when"), err)
	}
	if e.Kernel.Cost != "" {
		e.Cost, err = size.Int(e.Kernel.Cost)
		b.report(e.At("cost"), err)
	}
	if e.Kernel.Scratch != "" {
		e.Scratch, err = size.Int(e.Kernel.Scratch)
		if !b.report(e.At("scratch"), err) {
			b.report(e.At("scratch"), e.Scratch.CheckGrowth())
		}
	}
	launches := e.Kernel.Launches()
	for i, l := range launches {
		launch := Launch{Launch: &l, Entry: "atlas_" + e.ID}
		if len(launches) > 1 {
			launch.Entry = fmt.Sprintf("%s_%d", launch.Entry, i)
		}
		for _, text := range l.Grid {
			g, err := size.Int(text)
			if b.report(l.At("grid"), err) {
				continue
			}
			if n, ok := g.Constant(); ok && (n < 1 || n > 1<<31-1) {
				b.diags.Add(l.At("grid"), "write a positive number", "grid %q is always %d", text, n)
			}
			launch.Grid = append(launch.Grid, g)
		}
		b.threads(e, &launch, size)
		e.Launches = append(e.Launches, launch)
	}
	e.cover = expr.NewCover(e.Needs, e.When)
}

// scopes are what the names in an entry's condition and in its sizes mean. Entries without constants share them.
func (b *builder) scopes(e *Entry, features []string) (condition, size *expr.Scope) {
	if known, ok := b.shared[e.Op]; ok && len(e.Const) == 0 {
		return known[0], known[1]
	}
	constants := map[string]int64{}
	maps.Copy(constants, b.hardware.Constants)
	for name, value := range e.Const {
		if _, taken := b.hardware.Constants[name]; taken {
			b.diags.Add(e.At("const."+name), "rename it", "constant %s is a fact of hardware %s", name, b.hardware.Name)
		}
		if n, ok := value.(int64); ok {
			constants[name] = n
		}
	}
	condition = expr.OpScope(b.contract, e.Op, append(features, b.hardware.Options...), constants)
	size = expr.OpScope(b.contract, e.Op, nil, constants)
	if len(e.Const) == 0 {
		b.shared[e.Op] = [2]*expr.Scope{condition, size}
	}
	return condition, size
}

// names checks that kernels and their entry points have names of their own.
func (b *builder) names() {
	kernels, points := map[string]*Entry{}, map[string]*Entry{}
	for _, t := range b.hardware.Targets {
		if !modelName.MatchString(t.Model) {
			b.diags.Add(diag.Pos{File: t.Manifest.Path, Line: 1}, "use small letters, digits, dashes and dots", "model folder %q does not make a Go name", t.Model)
		}
		for _, e := range t.Entries {
			if other, taken := kernels[e.ID]; taken && other != e {
				b.diags.Add(e.At("name"), "rename one, or write replace = true in a model's manifest", "a second kernel %s; the first is at %s", e.Name, other.At("name"))
				continue
			}
			kernels[e.ID] = e
			for _, l := range e.Launches {
				if other, taken := points[l.Entry]; taken && other != e {
					b.diags.Add(e.At("name"), "rename one", "kernel %s has entry point %s, and so has %s at %s", e.Name, l.Entry, other.Name, other.At("name"))
				}
				points[l.Entry] = e
			}
		}
	}
}

// plainPath is what may appear in an include, a comment and on a command line.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

var modelName = regexp.MustCompile(`^[a-z][a-z0-9.-]*$`)

// Identifier is a hardware's or model's name as C and Go allow it.
func Identifier(name string) string { return strings.NewReplacer("-", "_", ".", "_").Replace(name) }

// layouts checks that a scheme with kernels has a layout.
func (b *builder) layouts() {
	reported := map[int64]bool{}
	for _, t := range b.hardware.Targets {
		for _, e := range t.Entries {
			for _, s := range e.Schemes {
				if !reported[s] && !slices.ContainsFunc(b.hardware.Layouts, func(l Layout) bool { return l.Scheme.Value == s }) {
					reported[s] = true
					b.diags.Add(e.At(""), "add a [[layout]]", "hardware %s has kernels for weight scheme %s but no layout", b.hardware.Name, b.schemeName(s))
				}
			}
		}
	}
}
