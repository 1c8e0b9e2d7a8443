package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/plan"
	"github.com/atlas-inference/atlas/atlasc/internal/tune"
)

// step is a batch that a model works on: so many sequences, each with so many new tokens and so many in all.
type step struct{ sequences, rowsEach, context int64 }

// bound says which flag is no size of a step.
func bound(flag string, n int64) error {
	if n < 1 || n > 1<<20 {
		return fmt.Errorf("%s is %d, must be between 1 and %d", flag, n, 1<<20)
	}
	return nil
}

// call is all calls of a step that are alike, as the runtime lists them.
type call struct {
	tune.Shape
	What     string // the tensors that it reads; "" where it reads none
	Scheme   string // of its weight; "" where it has none
	Sizes    string // for people
	Bytes    int64  // that one must move at least
	Launches []struct{ Kernel string }

	entry *plan.Entry // that serves it
}

// modelSteps ask what steps of a model call on a hardware. The runtime runs the model's own forward pass on kernels that no device has
// loaded: there is no description of models here.
type modelSteps struct {
	config, quant string
	set           string // "base", or the model whose kernels are meant
	exact         bool
	without       []string // features of manifests that the processor lacks
}

// calls lists those of one step.
func (m modelSteps) calls(env *environment, pkg *emit.Package, s step) ([]call, error) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	args := []string{"calls", m.config, "--json", "--hardware", pkg.Hardware.Name, "--quant", m.quant,
		"--batch", number(s.sequences), "--prompt", number(s.rowsEach), "--context", number(s.context)}
	if m.set != plan.Base {
		args = append(args, "--name", m.set)
	}
	if m.exact {
		args = append(args, "--exact")
	}
	var absent []string
	for _, feature := range m.without {
		f, ok := pkg.Hardware.Features[feature]
		if !ok {
			return nil, usageError{fmt.Errorf("hardware %s has no feature %q", pkg.Hardware.Name, feature)}
		}
		absent = append(absent, f.CPU...)
	}
	if len(absent) > 0 {
		args = append(args, "--without", strings.Join(absent, ","))
	}
	var out bytes.Buffer
	if err := env.runtime(&out, args...); err != nil {
		return nil, err
	}
	var report struct {
		Contract string
		Calls    []call
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return nil, fmt.Errorf("read the calls that the runtime lists: %w", err)
	}
	if report.Contract != pkg.Contract {
		return nil, fmt.Errorf("bin/atlasrt is stale: it has other code for %s than the manifests ask for (run `make build`)", pkg.Hardware.Name)
	}
	for i := range report.Calls {
		c := &report.Calls[i]
		if len(c.Launches) == 0 {
			return nil, fmt.Errorf("the runtime lists a call of %s that launches nothing", c.Op)
		}
		point := slices.IndexFunc(pkg.Entries, func(p emit.EntryPoint) bool { return p.Name == c.Launches[0].Kernel })
		if point < 0 {
			return nil, fmt.Errorf("the runtime launches %s for %s, and no manifest names it", c.Launches[0].Kernel, c.Op)
		}
		c.entry = pkg.Entries[point].Entry
	}
	return report.Calls, nil
}
