package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/internal/table"
)

type listCommand struct {
	Kernels bool `help:"List every kernel as well."`
}

func (c *listCommand) Run(env *environment) error {
	p, err := load(env.root, everything)
	if err != nil {
		return err
	}
	t := newTable(env, "hardware", "model", "quant", "\tkernels", "image")
	for _, pkg := range p.out.Packages {
		for _, target := range pkg.Hardware.Targets {
			own := 0
			for _, e := range target.Entries {
				if e.File() == target.Manifest.Path {
					own++
				}
			}
			t.Row(pkg.Hardware.Name, target.Model, target.Quant, strconv.Itoa(own), string(p.state(pkg)))
		}
	}
	if err := t.render(); err != nil || !c.Kernels {
		return err
	}
	fmt.Fprintln(env.stdout)
	k := newTable(env, "hardware", "operation", "kernel", "order", "manifest")
	for _, pkg := range p.out.Packages {
		for _, e := range pkg.Hardware.Entries {
			name := e.Name
			if e.Model != plan.Base {
				name += " for " + e.Model
			}
			k.Row(pkg.Hardware.Name, e.Op.Name, name, e.Order, e.At("").String())
		}
	}
	return k.render()
}

// reportTable is a table on standard output.
type reportTable struct {
	*table.Table
	to io.Writer
}

func newTable(env *environment, columns ...string) reportTable {
	return reportTable{table.New(columns...), env.stdout}
}

func (t reportTable) render() error { return t.Print(t.to) }
