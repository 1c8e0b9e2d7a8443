// Package targets describes the hardware that kernels are compiled for, and what is known of models by their names, one TOML file each.
//
// The compiler reads the files in the source tree; programs that only ask read those built into them.
package targets

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/targets/strict"
)

// embedded is the source tree's folders of hardware and models.
//
//go:embed hardware/*.toml models/*.toml
var embedded embed.FS

// Embedded returns the files that were in the source tree when the program was built, for Hardwares and Models.
func Embedded() fs.FS { return embedded }

// Hardware is one kind of processor.
type Hardware struct {
	Name        string             // of its file: "cpu-x86-64-v3"
	File        string             // relative to the folder of this package
	Device      string             `toml:"device"`      // which package of atlasrt/device runs it
	Toolchain   string             `toml:"toolchain"`   // what compiles for it
	Arch        string             `toml:"arch"`        // Go's name of the processors whose programs carry the kernels; empty: all
	Compiler    string             `toml:"compiler"`    // command that compiles on machines of another arch: "aarch64-linux-gnu-gcc"
	Activations string             `toml:"activations"` // element type of act in op's tags: f32 or bf16
	Flags       []string           `toml:"flags"`       // for every unit
	Needs       []string           `toml:"needs"`       // processor features without which no kernel runs, as in Linux /proc/cpuinfo
	Features    map[string]Feature `toml:"features"`    // that a kernel may need besides, by the names that manifests use
	Options     []string           `toml:"options"`     // switches of the runtime that a `when` may ask for
	Runtime     []string           `toml:"runtime"`     // C files under kernels/ that belong to every image
	Stack       int64              `toml:"stack"`       // bytes of a thread's stack that any kernel may have: spilled registers lie there
	Constants   map[string]int64   `toml:"constants"`   // facts that kernels and expressions of manifests know by these names
	lines       *strict.Lines
}

// Feature is something that only some processors of a hardware have.
type Feature struct {
	CPU   []string `toml:"cpu"`   // as in Linux /proc/cpuinfo; all are needed
	Flags []string `toml:"flags"` // for units that need it
}

// Line is where in the file a key stands; 0 where it does not.
func (h *Hardware) Line(key string) int { return h.lines.At(key) }

// Problem is what is wrong with one line of a file.
type Problem struct {
	File string // relative to the folder of this package
	strict.Problem
}

// Error names the file and the line.
func (p Problem) Error() string { return fmt.Sprintf("targets/%s:%d: %s", p.File, p.Line, p.Problem) }

// Hardwares reads every hardware in files, sorted by name. The error joins Problems where content is to blame.
func Hardwares(files fs.FS) ([]*Hardware, error) {
	var all []*Hardware
	err := read(files, "hardware", func(name, file, text string) []strict.Problem {
		h := &Hardware{Name: name, File: file}
		all = append(all, h)
		var wrong []strict.Problem
		if h.lines, wrong = strict.Decode(text, h); wrong == nil {
			wrong = h.check()
		}
		return wrong
	})
	return all, err
}

// read hands the files of a folder to decode, by name. The error joins Problems where content is to blame.
func read(files fs.FS, folder string, decode func(name, file, text string) []strict.Problem) error {
	names, err := fs.Glob(files, folder+"/*.toml")
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	slices.Sort(names)
	var problems []error
	for _, file := range names {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return fmt.Errorf("read %s: %w", folder, err)
		}
		for _, p := range decode(strings.TrimSuffix(path.Base(file), ".toml"), file, string(text)) {
			problems = append(problems, Problem{file, p})
		}
	}
	return errors.Join(problems...)
}

var (
	constantName = regexp.MustCompile(`^k[A-Z][A-Za-z0-9]*$`)
	hardwareName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	archName     = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	featureName  = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// CheckName tells what is wrong with the name of a hardware, if anything.
func CheckName(name string) error {
	if !hardwareName.MatchString(name) {
		return fmt.Errorf("hardware name %q is not made of small letters, digits and dashes", name)
	}
	return nil
}

// check finds what types alone do not tell.
func (h *Hardware) check() []strict.Problem {
	var problems []strict.Problem
	report := func(key, format string, args ...any) {
		problems = append(problems, strict.Problem{Line: max(1, h.lines.At(key)), Msg: fmt.Sprintf(format, args...)})
	}
	if err := CheckName(h.Name); err != nil {
		report("", "%v", err)
	}
	for key, value := range map[string]string{"device": h.Device, "toolchain": h.Toolchain, "activations": h.Activations} {
		if value == "" {
			report(key, "key %q is missing", key)
		}
	}
	if h.Activations != "" && h.Activations != "f32" && h.Activations != "bf16" {
		report("activations", "activations are %q, want f32 or bf16", h.Activations)
	}
	if (h.Arch == "") != (h.Compiler == "") {
		report("arch", "keys \"arch\" and \"compiler\" go together: the second compiles on machines of another arch")
	}
	if h.Arch != "" && !archName.MatchString(h.Arch) {
		report("arch", "arch %q is not a name of Go's (amd64, arm64)", h.Arch)
	}
	for name := range h.Constants {
		if !constantName.MatchString(name) {
			report("constants."+name, "constant name %q is not of the form kCamel", name)
		}
	}
	if _, known := devices[h.Device]; !known && h.Device != "" {
		report("device", "device %q is unknown (known: %s)", h.Device, strings.Join(deviceNames(), ", "))
	}
	if h.Is().Threads && (h.Constants["kSharedPerBlock"] <= 0 || h.Constants["kSharedPerBlock"] > 1<<20) {
		report("constants", "constant kSharedPerBlock, the bytes of shared memory that a block can have, is missing or no size")
	}
	if h.Stack < 0 || h.Stack > 1<<20 || h.Stack > 0 && !h.Is().Threads {
		report("stack", "stack is %d: it is for GPUs, and a size", h.Stack)
	}
	for name, f := range h.Features {
		if !featureName.MatchString(name) {
			report("features."+name, "feature name %q is not made of small letters and digits", name)
		}
		if len(f.CPU) == 0 {
			report("features."+name, "feature %s says not what to look for: key \"cpu\" is missing", name)
		}
	}
	for _, name := range h.Options {
		if _, clash := h.Features[name]; clash || !featureName.MatchString(name) {
			report("options", "option name %q is a feature's too, or not made of small letters and digits", name)
		}
	}
	slices.SortFunc(problems, func(a, b strict.Problem) int { return strings.Compare(a.Msg, b.Msg) })
	return problems
}
