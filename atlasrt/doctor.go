package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/device/cpu"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu/cgroup"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/internal/table"
)

// doctorCommand says what runs here.
type doctorCommand struct{ hardwareFlags }

// Run implements the command. It fails where no kernels can run.
func (c *doctorCommand) Run() error {
	shown := table.New("hardware", "state", "uses")
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
		shown.Row(b.Hardware, state, strings.Join(uses, " "))
	}
	if err := shown.Print(os.Stdout); err != nil {
		return err
	}
	d, err := cpu.New(c.Threads)
	if err != nil {
		return err
	}
	limits, unread := d.Limits()
	fmt.Printf("processors: %d; CPU quota: %s; threads: %d\n", runtime.NumCPU(), quota(limits), d.Threads())
	free, total := d.Memory()
	fmt.Printf("memory: %s free of %s; limit of control groups: %s\n", formatBytes(free), formatBytes(total), memoryLimit(limits))
	if unread != nil {
		fmt.Printf("not read, and taken as no limit: %v\n", unread)
	}
	if usable == 0 {
		return errors.New("no kernels can run here (the table says what each lacks; make build and make cuda build them)")
	}
	return nil
}

// quota says how many processors control groups let this process keep busy.
func quota(l cgroup.Limits) string {
	if l.Processors == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4g", l.Processors)
}

// memoryLimit says how much memory they let it have.
func memoryLimit(l cgroup.Limits) string {
	if l.Memory.From == "" {
		return "none"
	}
	return fmt.Sprintf("%s (%s)", formatBytes(l.Memory.Limit), l.Memory.From)
}
