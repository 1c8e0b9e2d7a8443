package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/atlas-inference/atlas/atlasrt/device/cpu"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

// doctorCommand says what runs here.
type doctorCommand struct{ hardwareFlags }

// Run implements the command. It fails where no kernels can run.
func (c *doctorCommand) Run() error {
	table := tablewriter.NewTable(os.Stdout, tablewriter.WithHeaderAutoFormat(tw.Off))
	table.Header("hardware", "state", "uses")
	usable := 0
	for _, b := range bundles() {
		state := "ready"
		var uses []string
		h := instance.Hardware{Bundles: bundles(), Name: b.Hardware, Kernels: c.Kernels, Threads: 1, GPU: c.GPU}
		present, absent := h.Features(b.Device)
		for _, f := range b.Features {
			if slices.Contains(present, f) {
				uses = append(uses, f)
			}
		}
		if absent != nil {
			state = absent.Error()
		} else if missing := b.Missing(present); len(missing) > 0 {
			state = "this processor lacks " + strings.Join(missing, ", ")
		} else if t, err := h.Open(); err != nil {
			state = err.Error()
		} else {
			usable++
			_ = t.Device.Close()
		}
		_ = table.Append(b.Hardware, state, strings.Join(uses, " "))
	}
	if err := table.Render(); err != nil {
		return err
	}
	d, err := cpu.New(c.Threads)
	if err != nil {
		return err
	}
	free, total := d.Memory()
	fmt.Printf("processors: %d; memory: %s free of %s\n", d.Threads(), formatBytes(free), formatBytes(total))
	if usable == 0 {
		return fmt.Errorf("no kernels can run here")
	}
	return nil
}
