package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/internal/table"
)

// Every table fits, whatever names and numbers it holds.
func TestTablesFit(t *testing.T) {
	long := strings.Repeat("a_very_long_name_", 12) + "end of it"
	huge := spread{123456789.1, 123456789.1, 123456789.1}
	results := []optest.BenchResult{{Op: long, Case: long}, {Op: long, Case: long, Message: long}}
	for i := range results {
		results[i].Cold.Median, results[i].Warm.Median = time.Hour, time.Hour
	}
	theirs := peers{{long, long}: {Name: long, Cold: 1e9, Warm: 1e9}}
	cases := []struct {
		what  string
		print func(w io.Writer) error
	}{
		{"bench", (&benchReport{Checkpoint: "tiny", Hardware: "abacus", Start: []stage{{long, 123456}}, Measurements: []measurement{
			{What: long, Sequences: 123456, Rate: huge, Time: huge, Host: 123456789, HostHalf: 123456789}, {What: long, Sequences: 64, Note: long},
		}}).print},
		{"bench --profile", (&profileReport{Steps: []optest.Profile{{Rows: []optest.ProfileRow{{Op: long, Case: long, Kernels: []string{long, long}, Calls: 123456}}}}}).print},
		{"ops bench on a CPU", queuedTable(optest.BenchReport{Results: results}).Print},
		{"ops bench on a GPU", replayedTable(optest.BenchReport{Results: results}, nil).Print},
		{"ops bench beside others", replayedTable(optest.BenchReport{Results: results}, theirs).Print},
		{"calls", (&callsReport{Hardware: "abacus", Calls: []calls.Call{{What: long, Sizes: long, Bytes: 1 << 40, Launches: []calls.Launch{{Kernel: long}, {Kernel: long}}}}}).print},
		{"sampling", func(w io.Writer) error {
			return printSettings(w, "sampling", []instance.Setting{{Name: long, Value: long, From: long}})
		}},
		{"list", func(w io.Writer) error {
			return printModels(w, []listed{{Model: long, Format: "safetensors", Stored: "BF16", Bytes: 1 << 50, Context: 1 << 30, State: modelUnserved, Reason: long + " " + long}}, long)
		}},
		{"list of nothing", func(w io.Writer) error { return printModels(w, nil, long) }},
		{"inspect", func(w io.Writer) error {
			return printTensors(w, matrixTitles, []entry{{long + ".1.a", []string{long, long, long}}, {long + ".3.a", []string{long, long, long}}}, false, layersBelow)
		}},
		{"inspect --all", func(w io.Writer) error {
			return printTensors(w, tensorTitles, []entry{{long, []string{long, long, long}}}, true, wholly)
		}},
		{"--print-config", func(w io.Writer) error {
			_, context, err := parseLine(t, "serve", "--model", long, "--hosts", long, "--kernels", t.TempDir())
			if err != nil {
				return err
			}
			return printConfig(w, context)
		}},
	}
	for _, c := range cases {
		var out bytes.Buffer
		if err := c.print(&out); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if out.Len() == 0 {
			t.Errorf("%s: nothing was printed", c.what)
		}
		for line := range strings.Lines(out.String()) {
			if got := displaywidth.String(strings.TrimRight(line, "\n")); got > table.Columns {
				t.Errorf("%s: a line of %d columns, want at most %d: %q", c.what, got, table.Columns, line)
			}
		}
	}
}
