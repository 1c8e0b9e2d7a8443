package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/tune"
)

// Files of a scheme's folder.
const (
	tunedTable  = "tuned.toml"
	tunedRecord = "tuned.json"
)

// keep writes tables and records, one pair for each scheme, in place of what was there for the shapes.
func (t *tuner) keep(env *environment, report *tune.Report) error {
	records := map[string]*tune.Record{}
	shown := newTable(env, "operation", "scheme", "matrix", "\trows", "own", "\tµs", "kernel", "\tµs", "\t% of read")
	for _, tried := range report.Tried {
		scheme := t.schemeOf(tried.Shape)
		chosen, ok := tune.Choose(tried)
		if !ok {
			fmt.Fprintf(env.stderr, "atlasc: %s %s not measured: %s\n", tried.Shape.Op, scheme, tried.Message)
			continue
		}
		if records[scheme] == nil {
			records[scheme] = &tune.Record{Machine: machine(t.cpuinfo)}
		}
		records[scheme].Shapes = append(records[scheme].Shapes, chosen)
		best := chosen.Kernels[slices.IndexFunc(chosen.Kernels, func(k tune.Timed) bool { return k.Kernel == chosen.Kernel })]
		shown.Row(chosen.Op, scheme, fmt.Sprintf("%d×%d", chosen.Args["W.Rows"], chosen.Args["W.Cols"]), fmt.Sprint(chosen.Args["Rows"]), chosen.Own,
			fmt.Sprintf("%.1f", chosen.Kernels[0].Microseconds), chosen.Kernel, fmt.Sprintf("%.1f", best.Microseconds), fmt.Sprintf("%.0f", best.Percent))
	}
	if err := shown.render(); err != nil {
		return err
	}
	for _, target := range t.hardware.Targets {
		if r := records[target.Quant]; r != nil && target.Model == plan.Base {
			if err := t.write(env, target, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a scheme's table and record, and sees that the manifest reads the table.
func (t *tuner) write(env *environment, target plan.Target, r *tune.Record) error {
	text, err := r.JSON()
	if err != nil {
		return err
	}
	toml, err := t.manifest(target, r)
	if err != nil {
		return err
	}
	folder := filepath.Dir(filepath.Join(t.root, filepath.FromSlash(target.Manifest.Path)))
	if err := errors.Join(replace(filepath.Join(folder, tunedRecord), text), replace(filepath.Join(folder, tunedTable), []byte(toml))); err != nil {
		return fmt.Errorf("write the tuned table: %w", err)
	}
	fmt.Fprintf(env.stdout, "wrote %s with %d entries\n", strings.TrimSuffix(target.Manifest.Path, "kernels.toml")+tunedTable, len(r.Entries()))
	if slices.Contains(target.Manifest.Before, tunedTable) {
		return nil
	}
	file := filepath.Join(t.root, filepath.FromSlash(target.Manifest.Path))
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	line := fmt.Sprintf("before = [%q]\n", tunedTable)
	at := bytes.Index(old, []byte("scheme"))
	if len(target.Manifest.Before) > 0 || at < 0 || at > 0 && old[at-1] != '\n' || bytes.Contains(old[:at], []byte("\n[")) {
		fmt.Fprintf(env.stdout, "add to %s: %s", target.Manifest.Path, line)
		return nil
	}
	if err := replace(file, slices.Concat(old[:at], []byte(line), old[at:])); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	fmt.Fprintf(env.stdout, "%s now reads it; run: atlasc build --hw %s\n", target.Manifest.Path, t.hardware.Name)
	return nil
}

// manifest is a table as TOML.
func (t *tuner) manifest(target plan.Target, r *tune.Record) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by atlasc tune from %s: shapes that another kernel serves faster.\n", tunedRecord)
	for _, x := range r.Entries() {
		entries := t.untuned(x.Op, target.Quant)
		i := slices.IndexFunc(entries, func(e *plan.Entry) bool { return e.Name == x.Kernel })
		if i < 0 {
			return "", fmt.Errorf("kernel %s is gone since it was measured: tune again", x.Kernel)
		}
		when := x.When
		for _, option := range t.hardware.Options {
			if slices.ContainsFunc(entries, func(e *plan.Entry) bool { return slices.Contains(e.Conditions(), option) }) {
				when += " && !" + option
			}
		}
		fmt.Fprintf(&b, "\n# %s\n%s", x.Comment, entries[i].Instance(x.Name, when, ""))
	}
	return b.String(), nil
}

// replay writes the tables of all records that this machine has made.
func replay(env *environment, p *project, h *plan.Hardware) error {
	t := &tuner{project: p, hardware: h, cpuinfo: readCPUInfo()}
	found := false
	for _, target := range h.Targets {
		file := filepath.Join(p.root, filepath.FromSlash(strings.TrimSuffix(target.Manifest.Path, "kernels.toml")+tunedRecord))
		text, err := os.ReadFile(file)
		if target.Model != plan.Base || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read what tuning measured: %w", err)
		}
		r, err := tune.Read(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if now := machine(t.cpuinfo); r.Machine != now {
			return fmt.Errorf("%s was measured on %q, and this machine is %q: tune again", file, r.Machine, now)
		}
		found = true
		if err := t.write(env, target, r); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("hardware %s has no measurements to replay: tune it first", h.Name)
	}
	return nil
}
