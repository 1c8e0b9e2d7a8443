package emit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

// setData is what the template of a set reads.
type setData struct {
	Mark, Package, Hardware string
	From                    []string // manifests
	Type, Model             string   // of the set
	Switches                []switchData
	Points                  []EntryPoint
	Arguments               []string // operations that some launch takes with scratch memory
	Methods                 []methodData
	Bounds                  []boundData // of operations that may ask for scratch memory
	Launchers               []launcherData
	Layouts                 []layoutData
	Schemes                 string // that have kernels
	Chooses                 bool   // some entries are compared by cost

	contract *contract.Contract
	pkg      *Package
}

// switchData is a feature or option that some branch asks for.
type switchData struct {
	Name string
	Has  string   // Go expression that tells whether it is on
	CPU  []string // features of the processor that it stands for
}

// methodData is an operation of a set.
type methodData struct {
	Type, Op, From string
	Partial        bool      // it reports whether it was served
	Plain          *caseData // where the operation has no weight
	Weight         string    // else the name of its field
	Cases          []caseData
}

type caseData struct {
	Schemes  string // op.SchemeBF16, op.SchemeQ8_0
	Rest     bool   // every branch has a condition: there is something that none serves
	Branches []branchData
}

// branchData is one branch; the last has no condition unless there is a rest. Of several entries each has a cost.
type branchData struct {
	Condition string
	Entries   []choiceData
}

type choiceData struct{ Launcher, Cost string }

// launcherData is a kernel's method: its launches in order.
type launcherData struct {
	Name, Op, From, Scratch string
	Launches                []launchData
}

type launchData struct {
	Kernel  string // constant of the entry point
	Grid    string
	NonZero string // condition under which there is a block at all; empty where there always is
	Padding int64  // bytes before the tensor maps
	Tiles   []string
}

type layoutData struct{ Scheme, Name, From, Bytes string }

func newSetData(c *contract.Contract, p *Package) *setData {
	h := p.Hardware
	d := &setData{Mark: Mark, Package: p.Name, Hardware: h.Name, Type: "Set", Points: p.Entries, contract: c, pkg: p}
	for _, t := range h.Targets {
		if t.Model == plan.Base {
			d.From = append(d.From, t.Manifest.Path)
		}
	}
	for _, e := range h.Entries {
		for _, name := range e.Conditions() {
			if !slices.ContainsFunc(d.Switches, func(s switchData) bool { return s.Name == name }) {
				d.Switches = append(d.Switches, d.feature(name))
			}
		}
		d.Chooses = d.Chooses || e.Choose != ""
		if e.Scratch != nil && !slices.Contains(d.Arguments, e.Op.Name) {
			d.Arguments = append(d.Arguments, e.Op.Name)
		}
	}
	slices.SortFunc(d.Switches, func(a, b switchData) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(d.Arguments)
	var schemes []string
	for _, l := range h.Layouts {
		d.Layouts = append(d.Layouts, layoutData{"op." + l.Scheme.Name, l.Name, l.At("").File, l.Size.Go()})
		schemes = append(schemes, plan.SchemeName(l.Scheme))
	}
	d.Schemes = strings.Join(schemes, ", ")
	d.fill(h.Sets[0])
	d.Bounds = bounds(h, h.Sets[0], d.Type)
	return d
}

// model is the data of a model's set, which embeds the base set.
func (d *setData) model(s *plan.Set) *setData {
	of := *d
	of.Model, of.Type = s.Model, "Set"+camel(plan.Identifier(s.Model))
	of.From, of.Methods, of.Launchers = nil, nil, nil
	for _, t := range d.pkg.Hardware.Targets {
		if t.Model == s.Model {
			of.From = append(of.From, t.Manifest.Path)
		}
	}
	of.fill(s)
	of.Bounds = bounds(d.pkg.Hardware, s, of.Type)
	return &of
}

// feature tells what to look for where a condition asks for a feature or option.
func (d *setData) feature(name string) switchData {
	s := switchData{Name: name}
	if f, ok := d.pkg.Hardware.Features[name]; ok {
		s.CPU = f.CPU
		for i, cpu := range f.CPU {
			if i > 0 {
				s.Has += " && "
			}
			s.Has += "has(" + strconv.Quote(cpu) + ")"
		}
		return s
	}
	s.Has = "has(" + strconv.Quote(name) + ")"
	return s
}

// fill adds the methods of a set, and those kernels that no set before it launches.
func (d *setData) fill(s *plan.Set) {
	launched := map[*plan.Entry]bool{}
	for _, dispatch := range s.Ops {
		m := methodData{Type: d.Type, Op: dispatch.Op.Name, Partial: dispatch.Op.Partial}
		if weight := dispatch.Op.Weight(); weight != nil {
			m.Weight = weight.Name
		}
		var files []string
		for _, c := range dispatch.Cases {
			data := caseData{Schemes: schemes(c)}
			choices := plan.Choices(c.Branches)
			for i, entries := range choices {
				b := choice(entries)
				if i == len(choices)-1 && !m.Partial {
					b.Condition = ""
				}
				data.Rest = b.Condition != ""
				data.Branches = append(data.Branches, b)
			}
			for _, e := range c.Branches {
				if file := e.At("").File; !slices.Contains(files, file) {
					files = append(files, file)
				}
				if e.Model == s.Model && !launched[e] {
					launched[e] = true
					d.Launchers = append(d.Launchers, d.launcher(e))
				}
			}
			if dispatch.Op.Weight() == nil {
				m.Plain = &data
			} else {
				m.Cases = append(m.Cases, data)
			}
		}
		if m.From = strings.Join(files, ",\n// "); m.From == "" {
			m.From = "no kernel"
		}
		d.Methods = append(d.Methods, m)
	}
}

// schemes are those of a case, in Go.
func schemes(c plan.Case) string {
	names := make([]string, len(c.Schemes))
	for i, scheme := range c.Schemes {
		names[i] = "op." + scheme.Name
	}
	return strings.Join(names, ", ")
}

// choice is a branch of one entry, or of several that are compared. Its condition is that of any of them; where they differ, an
// entry whose own does not hold costs more than all others.
func choice(entries []*plan.Entry) branchData {
	var b branchData
	var conditions []string
	for _, e := range entries {
		if condition := Condition(e); !slices.Contains(conditions, condition) {
			conditions = append(conditions, condition)
		}
	}
	for _, e := range entries {
		c := choiceData{Launcher: launcher(e)}
		if len(entries) > 1 {
			c.Cost = e.Cost.Go()
		}
		if condition := Condition(e); len(conditions) > 1 && condition != "" {
			c.Cost = "where(" + condition + ", " + c.Cost + ")"
		}
		b.Entries = append(b.Entries, c)
	}
	if !slices.Contains(conditions, "") {
		b.Condition = strings.Join(conditions, " || ")
	}
	return b
}

// Condition is the Go condition under which an entry serves: its features, then its own.
func Condition(e *plan.Entry) string {
	var parts []string
	for _, need := range e.Needs {
		parts = append(parts, "s.has."+need)
	}
	if e.When != nil {
		when := e.When.Go()
		if len(parts) > 0 && strings.Contains(when, "||") {
			when = "(" + when + ")"
		}
		parts = append(parts, when)
	}
	return strings.Join(parts, " && ")
}

func (d *setData) launcher(e *plan.Entry) launcherData {
	l := launcherData{Name: launcher(e), Op: e.Op.Name, From: e.At("").File}
	if e.Order != "" {
		l.From += ", order " + e.Order
	}
	if e.Rounds != "" {
		l.From += ", activations rounded to " + e.Rounds
	}
	if e.Scratch != nil {
		l.Scratch = e.Scratch.Go()
	}
	for _, launch := range e.Launches {
		dims := [3]string{"1", "1", "1"}
		var nonZero []string
		for i, g := range launch.Grid {
			dims[i] = g.GridGo()
			if _, constant := g.Constant(); !constant {
				nonZero = append(nonZero, "g."+string("XYZ"[i])+" != 0")
			}
		}
		var tiles []string
		for _, t := range launch.Tiles {
			tiles = append(tiles, fmt.Sprintf("op.Tile{Data: a.%s, Rows: %s, Cols: %s, Pitch: %s, BoxRows: %d, BoxCols: %d}",
				t.Field, t.Rows.Go(), t.Cols.Go(), t.Pitch.Go(), t.Box[0], t.Box[1]))
		}
		l.Launches = append(l.Launches, launchData{
			Tiles:   tiles,
			Padding: argumentBytes(e, &launch) - int64(len(tiles))*mapBytes - argumentBytes(e, &plan.Launch{}),
			Kernel:  place(launch.Entry),
			Grid:    fmt.Sprintf("op.Grid{X: %s, Y: %s, Z: %s}", dims[0], dims[1], dims[2]),
			NonZero: strings.Join(nonZero, " && "),
		})
	}
	return l
}

// launcher is the name of an entry's method.
func launcher(e *plan.Entry) string { return "launch" + camel(e.ID) }

// place is the name of an entry point's place among Kernels.
func place(entry string) string { return "kernel" + camel(strings.TrimPrefix(entry, "atlas_")) }

// Constant is the name of the entry point's place among Kernels.
func (p EntryPoint) Constant() string { return place(p.Name) }

// MostBlocks is the most blocks along x that an entry point whose blocks take one tile after another is launched with; 0 for
// one that has as many as there are tiles.
func (p EntryPoint) MostBlocks() int64 {
	if len(p.Launch.Grid) == 0 { // of hardware without threads
		return 0
	}
	blocks := p.Launch.Grid[0]
	most, limited := blocks.Most()
	if _, constant := blocks.Constant(); constant || !limited {
		return 0
	}
	return most
}

// camel turns linear_q8_0 into LinearQ8_0; the underscore stays before a digit, so that different names stay different.
func camel(name string) string {
	var b strings.Builder
	for i, part := range strings.Split(name, "_") {
		if part == "" || part[0] >= '0' && part[0] <= '9' {
			if i > 0 {
				b.WriteByte('_')
			}
			b.WriteString(part)
			continue
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// bundleData is what the template of a bundle reads.
type bundleData struct {
	*setData
	Device, Arch, Activations, Contract string
	Needs, Features                     []string
	Models                              []*setData // of models with kernels of their own
}

func newBundleData(d *setData, p *Package) bundleData {
	h := p.Hardware
	b := bundleData{setData: d, Device: h.Device, Arch: h.Arch, Activations: "op." + strings.ToUpper(h.Activations),
		Contract: p.Contract, Needs: h.Needs}
	for _, s := range h.Sets[1:] {
		b.Models = append(b.Models, d.model(s))
	}
	for _, s := range d.Switches {
		b.Features = append(b.Features, s.CPU...)
	}
	slices.Sort(b.Features)
	b.Features = slices.Compact(b.Features)
	return b
}
