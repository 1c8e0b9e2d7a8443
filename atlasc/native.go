package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
)

// native is the one of the packages that asks most of a processor and gets it from this one.
func native(packages []*emit.Package, cpuinfo string) ([]*emit.Package, error) {
	present := processorFeatures(cpuinfo)
	var best *emit.Package
	for _, p := range packages {
		h := p.Hardware
		lacks := func(feature string) bool { return !slices.Contains(present, feature) }
		if h.Is().Host && !slices.ContainsFunc(h.Needs, lacks) && (best == nil || len(h.Needs) > len(best.Hardware.Needs)) {
			best = p
		}
	}
	if best == nil {
		return nil, usageError{errors.New("--native: no hardware here has what this processor offers (atlasc list shows what there is)")}
	}
	return []*emit.Package{best}, nil
}

// processorFeatures are those of the first processor in /proc/cpuinfo.
func processorFeatures(cpuinfo string) []string {
	for line := range strings.Lines(cpuinfo) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "flags" || strings.TrimSpace(key) == "Features" {
			return strings.Fields(value)
		}
	}
	return nil
}

// readCPUInfo is empty where there is no such file.
func readCPUInfo() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return string(text)
}
