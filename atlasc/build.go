package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

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
	NoCompile bool   `help:"Generate code only."`
}

// Validate checks the patterns; kong calls it.
func (c *buildCommand) Validate() error {
	for _, pattern := range []string{c.HW, c.Model, c.Quant} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	return nil
}

func (c *buildCommand) Run(env *environment) error {
	p, err := load(env.root, c.HW)
	if err != nil {
		return err
	}
	packages, err := c.choose(p)
	if err != nil {
		return err
	}
	if err := p.write(); err != nil {
		return err
	}
	if c.NoCompile {
		return nil
	}
	var failed []error
	for _, pkg := range packages {
		if p.state(pkg) == built {
			continue
		}
		err := env.image(p, pkg)
		if toolchain.IsMissing(err) && len(packages) > 1 { // what can be built is built
			fmt.Fprintf(env.stdout, "%s: not built: %v\n", pkg.Hardware.Name, err)
			continue
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
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
	if c.Native {
		return native(chosen, readCPUInfo())
	}
	return chosen, nil
}

// write brings generated/ up to date: what changed is written, what is no longer generated goes.
func (p *project) write() error {
	for _, name := range slices.Sorted(maps.Keys(p.out.Files)) {
		file := filepath.Join(p.root, filepath.FromSlash(name))
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, p.out.Files[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
		if err := replace(file, p.out.Files[name]); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
	}
	strays, err := p.strays()
	if err != nil {
		return err
	}
	for _, name := range strays {
		file := filepath.Join(p.root, filepath.FromSlash(name))
		if text, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(text), emit.Mark) {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove generated code: %w", err)
			}
		}
	}
	return nil
}

// replace writes a file so that nobody sees half of it.
func replace(file string, text []byte) error {
	temporary := fmt.Sprintf("%s.%d.new", file, os.Getpid())
	if err := os.WriteFile(temporary, text, 0o666); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}

// strays lists the files of generated/ that a build neither writes nor compiles.
func (p *project) strays() ([]string, error) {
	var found []string
	folder := filepath.Join(p.root, emit.Folder)
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(p.root, file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		if p.only != everything && !p.owns(name) {
			return nil
		}
		if _, ours := p.out.Files[name]; !ours && !strings.HasSuffix(name, "/blob/image.zst") {
			found = append(found, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

// owns tells whether a file lies in the folder of a package of the project.
func (p *project) owns(name string) bool {
	return slices.ContainsFunc(p.out.Packages, func(pkg *emit.Package) bool { return strings.HasPrefix(name, pkg.Folder()+"/") })
}

// image compiles a package's kernels, looks at the result and puts it where the package embeds it.
func (env *environment) image(p *project, pkg *emit.Package) error {
	compiler, err := env.compiler(p, pkg.Hardware.Hardware)
	if err != nil {
		return err
	}
	b, err := env.builder(p)
	if err != nil {
		return err
	}
	if env.terminal {
		b.Progress = func(done, total int, u toolchain.Unit) {
			fmt.Fprintf(env.stderr, "\r\033[K%s: %d of %d, %s", pkg.Hardware.Name, done, total, u.Name)
		}
	}
	image, err := b.Image(env.ctx, compiler, pkg.Units)
	if env.terminal {
		fmt.Fprint(env.stderr, "\r\033[K")
	}
	if err != nil {
		return err
	}
	r, err := inspect.Image(image)
	if err != nil {
		return fmt.Errorf("%s: %w", pkg.Hardware.Name, err)
	}
	if err := verify(pkg, r); err != nil {
		return err
	}
	file, err := compress(pkg.ImageHeader(), image)
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(p.root, filepath.FromSlash(pkg.Image())), file); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	fmt.Fprintf(env.stdout, "%s: %d entry points, %d kB, packed %d kB\n", pkg.Hardware.Name, len(pkg.Entries), len(image)>>10, len(file)>>10)
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
