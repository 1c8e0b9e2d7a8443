package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/inspect"
)

type inspectCommand struct {
	Target string `arg:"" help:"Hardware."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// imageReport is what inspect prints as JSON.
type imageReport struct {
	Hardware string         `json:"hardware"`
	State    state          `json:"state"`
	Packed   int            `json:"packed_bytes"`
	Image    int64          `json:"image_bytes"`
	Machine  string         `json:"machine"`
	Kernels  []kernelReport `json:"kernels"`
}

type kernelReport struct {
	Entry     string `json:"entry"`
	Op        string `json:"op"`
	Manifest  string `json:"manifest"`
	Code      int64  `json:"code_bytes"`
	Arguments int64  `json:"argument_bytes"`
	// GPU is what a kernel of a GPU asks of a multiprocessor.
	GPU *gpuReport `json:"gpu,omitempty"`
}

type gpuReport struct {
	Threads       uint32 `json:"threads"` // of a block
	Registers     int64  `json:"registers"`
	Stack         int64  `json:"stack_bytes"` // where registers spill to
	Shared        int64  `json:"shared_bytes"`
	DynamicShared uint32 `json:"dynamic_shared_bytes"`
}

func (c *inspectCommand) Run(env *environment) error {
	p, err := loadTarget(env.root, c.Target)
	if err != nil {
		return err
	}
	pkg, _, err := p.target(c.Target)
	if err != nil {
		return err
	}
	out, err := p.imageReport(pkg)
	if err != nil {
		return err
	}
	if c.JSON {
		encoder := json.NewEncoder(env.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(out)
	}
	fmt.Fprintf(env.stdout, "%s: %s, %s, %d kB, packed %d kB\n", out.Hardware, out.State, out.Machine, out.Image>>10, out.Packed>>10)
	return out.table(env)
}

// imageReport looks at a package's image.
func (p *project) imageReport(pkg *emit.Package) (*imageReport, error) {
	packed, err := os.ReadFile(filepath.Join(p.root, pkg.Image()))
	if err != nil {
		return nil, fmt.Errorf("the kernels of %s are not built (run atlasc build --hw %[1]s)", pkg.Hardware.Name)
	}
	image, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg.Image(), err)
	}
	r, err := inspect.Image(image)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg.Image(), err)
	}
	out := &imageReport{Hardware: pkg.Hardware.Name, State: p.state(pkg), Packed: len(packed), Image: r.Bytes, Machine: r.Machine}
	for _, e := range pkg.Entries {
		f, _ := r.Function(e.Name) // a stale image may lack it: no code
		k := kernelReport{Entry: e.Name, Op: e.Entry.Op.Name, Manifest: e.Entry.At("").String(), Code: f.Code, Arguments: e.Argument}
		if f.Kernel != nil {
			k.GPU = &gpuReport{Threads: e.Launch.Threads(), Registers: f.Kernel.Registers, Stack: f.Kernel.Stack,
				Shared: f.Kernel.Shared, DynamicShared: e.Launch.Shared}
		}
		out.Kernels = append(out.Kernels, k)
	}
	return out, nil
}

// table prints the kernels; those of GPUs have so much to tell that their manifests are in a table of their own.
func (r *imageReport) table(env *environment) error {
	columns := []string{"entry point", "operation", "\tcode bytes", "\targument bytes"}
	gpu := slices.ContainsFunc(r.Kernels, func(k kernelReport) bool { return k.GPU != nil })
	places := newTable(env, "entry point", "manifest")
	if gpu {
		columns = append(columns, "\tthreads", "\tregisters", "\tstack", "\tshared", "\tdynamic shared")
	} else {
		columns = append(columns, "manifest")
	}
	t := newTable(env, columns...)
	for _, k := range r.Kernels {
		cells := []string{k.Entry, k.Op, strconv.FormatInt(k.Code, 10), strconv.FormatInt(k.Arguments, 10)}
		if !gpu {
			t.Row(append(cells, k.Manifest)...)
			continue
		}
		g := cmp.Or(k.GPU, &gpuReport{})
		for _, n := range []int64{int64(g.Threads), g.Registers, g.Stack, g.Shared, int64(g.DynamicShared)} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		t.Row(cells...)
		places.Row(k.Entry, k.Manifest)
	}
	if err := t.render(); err != nil || !gpu {
		return err
	}
	fmt.Fprintln(env.stdout)
	return places.render()
}

// imageLimit bounds what an image may grow to when it is unpacked.
const imageLimit = 512 << 20

// unpack drops the first line and decompresses the rest.
func unpack(packed []byte) ([]byte, error) {
	_, frame, ok := bytes.Cut(packed, []byte("\n"))
	if !ok {
		return nil, fmt.Errorf("no kernel image (run atlasc build)")
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(imageLimit), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(frame, nil)
}
