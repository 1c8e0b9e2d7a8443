package main

import (
	"cmp"
	_ "embed" // for the page
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/bench"
	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

// reportCommand writes a page about one hardware.
type reportCommand struct {
	Target   string `arg:"" help:"Hardware, or hardware/model."`
	Measured string `help:"Measurements kept by atlasc bench --save, to draw rooflines of." type:"existingfile" placeholder:"FILE"`
	Out      string `short:"o" help:"File to write (default: TARGET.html)." type:"path" placeholder:"FILE"`
}

//go:embed report.html
var reportPage string

// page is what the template reads.
type page struct {
	Target, Device, Toolchain, Arch string
	Needs, Flags                    []string
	Facts                           []fact
	Operations                      []operation
	Image                           *imageReport
	ImageProblem                    string
	GPU                             bool
	Machine                         string // of the measurements
	Plots                           []template.HTML
	Slowest                         []bench.Case
}

type fact struct {
	Name  string
	Value int64
}

// operation is one row group of the coverage table.
type operation struct {
	Name     string
	Required bool
	Cases    []operationCase
}

type operationCase struct {
	Schemes  string
	Branches []branch
}

type branch struct{ Condition, Kernel, Order, Manifest, Launches string }

func (c *reportCommand) Run(env *environment) error {
	p, err := loadTarget(env.root, c.Target)
	if err != nil {
		return err
	}
	pkg, set, err := p.target(c.Target)
	if err != nil {
		return err
	}
	content := newPage(p, c.Target, pkg, set)
	if c.Measured != "" {
		f, err := bench.Read(c.Measured)
		if err != nil {
			return err
		}
		if err := content.measured(f, pkg.Hardware.Name); err != nil {
			return err
		}
	}
	t, err := template.New("report").Funcs(template.FuncMap{"join": strings.Join, "micros": micros, "percent": percent, "gigaflops": gigaflops, "kilobytes": func(n int64) string {
		return fmt.Sprintf("%.1f", float64(n)/1e3)
	}}).Parse(reportPage)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	name := c.Out
	if name == "" {
		name = strings.ReplaceAll(c.Target, "/", "-") + ".html"
	}
	var b strings.Builder
	if err := t.Execute(&b, content); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	fmt.Fprintf(env.stdout, "wrote %s\n", name)
	return nil
}

// newPage gathers what needs no measurement.
func newPage(p *project, target string, pkg *emit.Package, set *plan.Set) *page {
	h := pkg.Hardware
	out := &page{Target: target, Device: h.Device, Toolchain: h.Toolchain, Arch: h.Arch, Needs: h.Needs, Flags: h.Flags}
	for name, value := range h.Constants {
		out.Facts = append(out.Facts, fact{name, value})
	}
	slices.SortFunc(out.Facts, func(a, b fact) int { return strings.Compare(a.Name, b.Name) })
	for _, op := range p.plan.Contract.Ops {
		d := set.Dispatch(op.Name)
		if d == nil {
			d = h.Sets[0].Dispatch(op.Name) // a model's set has only what differs
		}
		row := operation{Name: op.Name, Required: op.Required && !op.Partial}
		if d != nil {
			for _, cs := range d.Cases {
				row.Cases = append(row.Cases, caseRow(cs, op.Partial))
			}
		}
		out.Operations = append(out.Operations, row)
	}
	image, err := p.imageReport(pkg)
	if err != nil {
		out.ImageProblem = err.Error()
		return out
	}
	out.Image = image
	out.GPU = slices.ContainsFunc(image.Kernels, func(k kernelReport) bool { return k.GPU != nil })
	return out
}

// caseRow tells which kernels serve one case, and when.
func caseRow(cs plan.Case, partial bool) operationCase {
	var names []string
	for _, k := range cs.Schemes {
		names = append(names, plan.SchemeName(k))
	}
	out := operationCase{Schemes: strings.Join(names, ", ")}
	for i, e := range cs.Branches {
		b := branch{Condition: condition(e), Kernel: e.Name, Order: e.Order, Manifest: e.At("").String()}
		if i == len(cs.Branches)-1 && (!partial || b.Condition == "") {
			b.Condition = "otherwise"
		}
		for _, l := range e.Launches {
			b.Launches += l.Inst + "\n"
		}
		out.Branches = append(out.Branches, b)
	}
	return out
}

// shownSlowest is how many cases far from the ceiling a page lists.
const shownSlowest = 20

// measured adds what was measured on a hardware.
func (p *page) measured(f *bench.File, hardware string) error {
	p.Machine = f.Machine
	of := func(target string) bool { return target == hardware || target == hardware+" --exact" }
	for _, r := range rooflines(f) {
		if target := r.Title[:strings.LastIndex(r.Title, " ")]; of(target) { // a title ends with its operation
			p.Plots = append(p.Plots, template.HTML(r.SVG())) // package plot escapes what it is given
		}
	}
	for _, c := range f.Cases() {
		if c.Target == hardware && c.Bytes > 1<<20 { // small ones are about launching
			p.Slowest = append(p.Slowest, c)
		}
	}
	if len(p.Plots) == 0 {
		return fmt.Errorf("the measurements are of other hardware than %s", hardware)
	}
	slices.SortStableFunc(p.Slowest, func(a, b bench.Case) int { return cmp.Compare(share(a), share(b)) })
	p.Slowest = p.Slowest[:min(len(p.Slowest), shownSlowest)]
	return nil
}

// share is the part of the ceiling that a case reaches.
func share(c bench.Case) float64 { return c.BytesPerSecond() / float64(max(c.Ceiling, 1)) }

func percent(c bench.Case) string { return fmt.Sprintf("%.0f %%", 100*share(c)) }

// gigaflops is empty for calls whose products do not matter.
func gigaflops(c bench.Case) string {
	if c.Flops == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(c.Flops)/c.Time().Seconds()/1e9)
}
