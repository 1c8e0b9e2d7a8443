package main

import (
	"fmt"
	"strconv"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/atlas-inference/atlas/atlasc/internal/plan"
)

type listCommand struct {
	Kernels bool `help:"List every kernel as well."`
}

func (c *listCommand) Run(env *environment) error {
	p, err := load(env.root, everything)
	if err != nil {
		return err
	}
	t := table(env, "hardware", "model", "quant", "kernels", "image")
	for _, pkg := range p.out.Packages {
		for _, target := range pkg.Hardware.Targets {
			own := 0
			for _, e := range target.Entries {
				if e.File() == target.Manifest.Path {
					own++
				}
			}
			t.row(pkg.Hardware.Name, target.Model, target.Quant, strconv.Itoa(own), string(p.state(pkg)))
		}
	}
	if err := t.render(); err != nil || !c.Kernels {
		return err
	}
	fmt.Fprintln(env.stdout)
	k := table(env, "hardware", "operation", "kernel", "order", "manifest")
	for _, pkg := range p.out.Packages {
		for _, e := range pkg.Hardware.Entries {
			name := e.Name
			if e.Model != plan.Base {
				name += " for " + e.Model
			}
			k.row(pkg.Hardware.Name, e.Op.Name, name, e.Order, e.At("").String())
		}
	}
	return k.render()
}

// reportTable is a table on standard output that keeps its first error.
type reportTable struct {
	*tablewriter.Table
	err error
}

func table(env *environment, columns ...any) *reportTable {
	t := tablewriter.NewTable(env.stdout, tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone), tablewriter.WithRendition(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		}))
	t.Header(columns...)
	return &reportTable{Table: t}
}

func (t *reportTable) row(cells ...any) {
	if t.err == nil {
		t.err = t.Append(cells...)
	}
}

func (t *reportTable) render() error {
	if t.err != nil {
		return t.err
	}
	return t.Render()
}
