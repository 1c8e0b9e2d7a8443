package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/emit"
	"github.com/atlas-inference/atlas/atlasc/internal/inspect"
	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
)

type buildCommand struct {
	HW        string `name:"hw" help:"Read, generate and compile only hardware that matches (shell pattern)." default:"*" placeholder:"GLOB"`
	Model     string `help:"Compile only for hardware with a manifest of such a model." default:"*" placeholder:"GLOB"`
	Quant     string `help:"Compile only for hardware with a manifest of such a quantisation." default:"*" placeholder:"GLOB"`
	Native    bool   `help:"Compile only what runs best on this processor."`
	NoCompile bool   `help:"Generate code only." xor:"smoke,ptx"`
	Out       string `help:"Put images into DIR/HARDWARE/image.zst as well, where a running atlasrt --kernels DIR takes them up." type:"path" placeholder:"DIR"`
	Smoke     bool   `help:"Where there is no image, compile and inspect one kernel of each body and weight scheme, and keep nothing." xor:"smoke"`
	Jitter    bool   `help:"Compile GPU kernels whose warps are late at random wherever they wait, into --out alone: what relies on one being sooner than another fails there." xor:"smoke,ptx"`
	PTX       string `name:"ptx" help:"Write the PTX of GPU kernels into a folder besides, for reading." type:"path" xor:"ptx" placeholder:"DIR"`
}

// Validate checks the patterns; kong calls it.
func (c *buildCommand) Validate() error {
	for _, pattern := range []string{c.HW, c.Model, c.Quant} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	if c.Jitter && c.Out == "" {
		return errors.New("--jitter needs --out DIR: such kernels are for tests, not for a program to carry")
	}
	return nil
}

func (c *buildCommand) Run(env *environment) error {
	if c.Smoke || c.PTX != "" || c.Out != "" { // these do something each time
		_, err := c.build(env)
		return err
	}
	before, unclear := c.look(env)
	if unclear == nil && c.settled(env, before) {
		return nil
	}
	r, err := c.build(env)
	if err == nil && unclear == nil {
		c.leaveMark(env, before, r)
	}
	return err
}

// result is what a build read and chose to compile.
type result struct {
	project  *project
	packages []*emit.Package
	absent   []string // hardware whose compiler is missing
}

// build does it. What can be built is built where some compilers are missing.
func (c *buildCommand) build(env *environment) (*result, error) {
	p, packages, err := c.generate(env)
	r := &result{project: p, packages: packages}
	if err != nil || c.NoCompile {
		return r, err
	}
	var failed []error
	for _, pkg := range packages {
		err := c.make(env, p, pkg)
		if !toolchain.IsMissing(err) {
			failed = append(failed, err)
			continue
		}
		if len(packages) > 1 {
			fmt.Fprintln(env.stdout, notBuilt(pkg.Hardware.Hardware, err))
		}
		if r.absent = append(r.absent, pkg.Hardware.Name); len(r.absent) == len(packages) {
			return nil, err
		}
	}
	return r, errors.Join(failed...)
}

// make does for one hardware what was asked for.
func (c *buildCommand) make(env *environment, p *project, pkg *emit.Package) error {
	if c.Jitter {
		return env.jitter(p, pkg, c.Out)
	}
	work := env.image
	if c.Smoke {
		work = env.smoke
	}
	if p.state(pkg) != built {
		if err := work(p, pkg); err != nil {
			return err
		}
	}
	if c.PTX != "" && pkg.Hardware.Is().Threads {
		if err := env.ptx(p, pkg, c.PTX); err != nil {
			return err
		}
	}
	if c.Out != "" && !c.Smoke {
		return p.publish(pkg, c.Out)
	}
	return nil
}

// generate reads the sources, writes the code, and returns what is to be compiled. Nobody else writes meanwhile.
func (c *buildCommand) generate(env *environment) (*project, []*emit.Package, error) {
	root, err := findRoot(env.root)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := lock(root)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	p, err := load(root, c.HW)
	if err != nil {
		return nil, nil, err
	}
	packages, err := c.choose(p)
	if err != nil {
		return nil, nil, err
	}
	return p, packages, p.write()
}

// publish copies a package's image to where a server follows it.
func (p *project) publish(pkg *emit.Package, out string) error {
	image, err := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(pkg.Image())))
	if err != nil {
		return fmt.Errorf("publish the kernels of %s: %w", pkg.Hardware.Name, err)
	}
	return put(pkg, out, image)
}

// put writes an image to where a server follows it, unless it is there.
func put(pkg *emit.Package, out string, image []byte) error {
	file := filepath.Join(out, pkg.Hardware.Name, "image.zst")
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, image) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("publish the kernels of %s: %w", pkg.Hardware.Name, err)
	}
	if err := replace(file, image); err != nil {
		return fmt.Errorf("publish the kernels of %s: %w", pkg.Hardware.Name, err)
	}
	return nil
}

// choose picks the packages whose hardware has a manifest that matches.
func (c *buildCommand) choose(p *project) ([]*emit.Package, error) {
	var chosen []*emit.Package
	for _, pkg := range p.out.Packages {
		for _, t := range pkg.Hardware.Targets {
			model, _ := path.Match(c.Model, t.Model) // Validate has seen the patterns
			quant, _ := path.Match(c.Quant, t.Quant)
			if model && quant {
				chosen = append(chosen, pkg)
				break
			}
		}
	}
	if len(chosen) == 0 {
		return nil, usageError{fmt.Errorf("no target matches --hw %s --model %s --quant %s (atlasc list shows them)", c.HW, c.Model, c.Quant)}
	}
	threads := func(pkg *emit.Package) bool { return pkg.Hardware.Is().Threads }
	if (c.PTX != "" || c.Jitter) && !slices.ContainsFunc(chosen, threads) {
		return nil, usageError{fmt.Errorf("--ptx and --jitter are for GPUs: --hw %s is none", c.HW)}
	}
	if c.Jitter {
		chosen = slices.DeleteFunc(chosen, func(pkg *emit.Package) bool { return !threads(pkg) })
	}
	if c.Native {
		return native(chosen, readCPUInfo())
	}
	return chosen, nil
}

// image compiles a package's kernels and puts them where the package embeds them.
func (env *environment) image(p *project, pkg *emit.Package) error {
	image, err := env.compile(p, pkg)
	if err != nil {
		return err
	}
	file, err := compress(pkg.ImageHeader(), image)
	if err != nil {
		return err
	}
	unlock, err := lock(p.root)
	if err != nil {
		return err
	}
	defer unlock()
	if err := replace(filepath.Join(p.root, filepath.FromSlash(pkg.Image())), file); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	fmt.Fprintf(env.stdout, "%s: %d entry points, %d kB, packed %d kB\n", pkg.Hardware.Name, len(pkg.Entries), len(image)>>10, len(file)>>10)
	return nil
}

// smoke compiles a part of a package's kernels, to find what a change breaks on hardware that is not here.
func (env *environment) smoke(p *project, pkg *emit.Package) error {
	some := pkg.Sample()
	if _, err := env.compile(p, some); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s: %d of %d entry points compile, no image\n", pkg.Hardware.Name, len(some.Entries), len(pkg.Entries))
	return nil
}

// compile makes a package's image and looks at it.
func (env *environment) compile(p *project, pkg *emit.Package) ([]byte, error) {
	compiler, err := env.compiler(p, pkg.Hardware.Hardware)
	if err != nil {
		return nil, err
	}
	b, err := env.builder(p)
	if err != nil {
		return nil, err
	}
	shown := newProgress(env.stderr, env.terminal, pkg.Hardware.Name, time.Now)
	b.Progress = shown.Compiled
	image, err := b.Image(env.ctx, compiler, pkg.Units)
	shown.End()
	if err != nil {
		return nil, err
	}
	r, err := inspect.Image(image)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg.Hardware.Name, err)
	}
	return image, verify(pkg, r)
}

// ptx writes the PTX of a package for a GPU, DIR/<hardware>/<kernel>.ptx.
func (env *environment) ptx(p *project, pkg *emit.Package, dir string) error {
	compiler, err := env.compiler(p, pkg.Hardware.Hardware)
	if err != nil {
		return err
	}
	translator, ok := compiler.(toolchain.Translator)
	if !ok {
		return usageError{fmt.Errorf("--ptx: the toolchain of %s writes no PTX (leave it out of --hw)", pkg.Hardware.Name)}
	}
	dir = filepath.Join(dir, pkg.Hardware.Name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("write PTX: %w", err)
	}
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, u := range pkg.Units {
		group.Go(func() error {
			name := strings.TrimSuffix(path.Base(u.Source), path.Ext(u.Source)) + ".ptx"
			return translator.PTX(env.ctx, u, filepath.Join(dir, name))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s: PTX of %d kernels in %s\n", pkg.Hardware.Name, len(pkg.Units), dir)
	return nil
}

// verify compares what was built with what was asked for.
func verify(pkg *emit.Package, r *inspect.Report) error {
	var diags diag.List
	for _, e := range pkg.Entries {
		if f, ok := r.Function(e.Name); !ok || f.Code == 0 {
			diags.Add(e.Entry.At(""), "the unit must define it with default visibility", "the image of %s lacks entry point %s", pkg.Hardware.Name, e.Name)
		}
	}
	for _, name := range r.Undefined {
		diags.Add(diag.Pos{File: "targets/" + pkg.Hardware.File, Line: 1}, "use libc and libm only", "the image of %s needs symbol %s from elsewhere", pkg.Hardware.Name, name)
	}
	return diags.Err()
}

// compress packs an image behind its header.
func compress(header string, image []byte) ([]byte, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("compress the image: %w", err)
	}
	defer z.Close()
	return z.EncodeAll(image, []byte(header)), nil
}
