package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu/cgroup"
	"github.com/atlas-inference/atlas/atlasrt/device/cuda"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Hardware says which kernels to run and how.
type Hardware struct {
	Bundles []*bundle.Bundle // what the program was linked with, the best first
	Name    string           // of one of them; empty: the first that this machine can run
	Kernels string           // a folder with <hardware>/image.zst that takes the place of the linked images
	Threads int              // of a CPU; 0: one for each processor that control groups let it keep busy
	GPU     int              // which one, where there are several
	Exact   bool             // activations stay in f32 everywhere
	AMX     bool             // kernels of a CPU may use its matrix tiles
}

// Target is a kernel set, and the device that runs it.
type Target struct {
	Device  device.Device  // nil: the set can be asked what it would launch, and not run
	Bundle  *bundle.Bundle // the generated code of its hardware
	Set     bundle.Set     // the kernels, with the options that are on
	Kernels []op.Kernel    // of Bundle, in its order

	present []string // features of the processor, and options that are on
}

// Open picks a target for any model and loads its kernels.
func (h Hardware) Open() (*Target, error) {
	b, present, err := h.choose()
	if err != nil {
		return nil, err
	}
	if missing := b.Missing(present); len(missing) > 0 {
		return nil, fmt.Errorf("%s needs a processor with %s (choose other --hardware, or leave it out)", b.Hardware, strings.Join(missing, ", "))
	}
	var override fs.FS
	if h.Kernels != "" {
		override = os.DirFS(h.Kernels)
	}
	d, err := h.device(b)
	if err != nil {
		return nil, err
	}
	kernels, err := b.Load(d, override)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	t := Target{Device: d, Bundle: b, Kernels: kernels, present: append(present, h.options()...)}
	return t.For(""), nil
}

// Ask is Open without a device and without kernels: hardware that is named need not be in this machine. Features of its processor count as
// there, but for those of without.
func (h Hardware) Ask(without ...string) (*Target, error) {
	b, err := h.named()
	if h.Name == "" {
		b, _, err = h.choose()
	}
	if err != nil {
		return nil, err
	}
	for _, feature := range without {
		if !slices.Contains(b.Features, feature) {
			return nil, fmt.Errorf("no kernel of %s asks for the processor feature %q (they ask for: %s)", b.Hardware, feature, strings.Join(b.Features, ", "))
		}
	}
	present := slices.DeleteFunc(slices.Concat(b.Needs, b.Features), func(f string) bool { return slices.Contains(without, f) })
	t := Target{Bundle: b, Kernels: b.Unloaded(), present: append(present, h.options()...)}
	return t.For(""), nil
}

// For is the target with the set for the model that a checkpoint's name tells, or any for "". Both share the device.
func (t *Target) For(checkpoint string) *Target {
	of := *t
	of.Set = t.Bundle.Set(checkpoint, t.Kernels, t.present)
	return &of
}

// Points are the kernels that the target's set launches, by the names of their entry points.
func (t *Target) Points() map[string]op.Kernel {
	points := make(map[string]op.Kernel, len(t.Kernels))
	for i, k := range t.Kernels {
		points[t.Bundle.Kernels[i].Name] = k
	}
	return points
}

// options are those of a set.
func (h Hardware) options() []string {
	var on []string
	if h.Exact {
		on = append(on, "exact")
	}
	if h.AMX {
		on = append(on, "amx")
	}
	return on
}

// device opens what b's kernels run on.
func (h Hardware) device(b *bundle.Bundle) (device.Device, error) {
	switch b.Device {
	case "cpu":
		if h.AMX {
			if err := cpu.AllowTiles(); err != nil {
				return nil, fmt.Errorf("%w (leave --amx out)", err)
			}
		}
		return cpu.New(h.Threads)
	case "cuda":
		return cuda.Open(h.GPU)
	}
	return nil, fmt.Errorf("%s: this program has no device called %q", b.Hardware, b.Device)
}

// Features lists what this machine's processor of a kind of device has.
func (h Hardware) Features(device string) ([]string, error) {
	switch device {
	case "cpu":
		return cpu.Features(), nil
	case "cuda":
		p, err := cuda.Probe(h.GPU)
		return p.Features(), err
	}
	return nil, fmt.Errorf("this program has no device called %q", device)
}

// named finds the bundle of h.Name.
func (h Hardware) named() (*bundle.Bundle, error) {
	i := slices.IndexFunc(h.Bundles, func(b *bundle.Bundle) bool { return b.Hardware == h.Name })
	if i < 0 {
		return nil, fmt.Errorf("this program has no kernels for %q (it has: %s)", h.Name, h.names())
	}
	return h.Bundles[i], nil
}

// choose finds the named bundle, or the best that this machine can run, and what the machine has.
func (h Hardware) choose() (*bundle.Bundle, []string, error) {
	if h.Name != "" {
		b, err := h.named()
		if err != nil {
			return nil, nil, err
		}
		present, err := h.Features(b.Device)
		return b, present, err
	}
	for _, built := range []bool{true, false} { // kernels that are not built are worth an error only where none are
		for _, b := range h.Bundles {
			present, err := h.Features(b.Device)
			if err == nil && len(b.Missing(present)) == 0 && (b.Built() || h.Kernels != "" || !built) {
				return b, present, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("this machine can run none of the kernels that this program has: %s (atlasrt doctor says what each lacks)", h.names())
}

func (h Hardware) names() string {
	var names []string
	for _, b := range h.Bundles {
		names = append(names, b.Hardware)
	}
	return strings.Join(names, ", ")
}

// Threads is how many threads run kernels.
func (t *Target) Threads() int {
	if d, ok := t.Device.(*cpu.Device); ok {
		return d.Threads()
	}
	return 0
}

// Limits are what control groups let the program use beside the device's own limits; none where it is no CPU that computes. The error
// says what of them cannot be read.
func (t *Target) Limits() (cgroup.Limits, error) {
	if d, ok := t.Device.(*cpu.Device); ok {
		return d.Limits()
	}
	return cgroup.Limits{}, nil
}

// memory is what the device has free and in all, and the file of the control group that bounds it, if one does. Without a device nothing
// is known: none is free, and nothing is too much.
func (t *Target) memory() (free, total int64, limit string) {
	if t.Device == nil {
		return 0, math.MaxInt64, ""
	}
	if d, ok := t.Device.(*cpu.Device); ok {
		return d.BoundMemory()
	}
	free, total = t.Device.Memory()
	return free, total, ""
}

// Runs reports whether this machine's processor can run the named kernels.
func (h Hardware) Runs() bool {
	b, present, err := h.choose()
	return err == nil && len(b.Missing(present)) == 0
}
