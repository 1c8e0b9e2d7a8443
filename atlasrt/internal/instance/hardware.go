package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu/cgroup"
	"github.com/atlas-inference/atlas/atlasrt/device/cuda"
)

// Hardware says which kernels to run and how.
type Hardware struct {
	Bundles []*bundle.Bundle // what the program was linked with, the best first
	Name    string           // of one of them; empty: the first that this machine can run
	Kernels string           // a folder with <hardware>/image.zst that takes the place of the linked images
	Threads int              // of a CPU; 0: one for each processor that control groups let it keep busy
	GPU     int              // which one, where there are several
	Model   string           // name of the checkpoint, for kernels made for it; empty: none of those
	Exact   bool             // activations stay in f32 everywhere
	AMX     bool             // kernels of a CPU may use its matrix tiles
}

// Target is a device with the kernels that run on it.
type Target struct {
	Device device.Device
	Set    bundle.Set
	Bundle *bundle.Bundle
}

// Open picks a target and loads its kernels.
func (h Hardware) Open() (*Target, error) {
	b, present, err := h.choose()
	if err != nil {
		return nil, err
	}
	var override fs.FS
	if h.Kernels != "" {
		override = os.DirFS(h.Kernels)
	}
	d, err := h.device(b)
	if err != nil {
		return nil, err
	}
	if h.Exact {
		present = append(present, "exact")
	}
	if h.AMX {
		present = append(present, "amx")
	}
	set, err := bundle.Load(b, d, h.Model, present, override)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &Target{Device: d, Set: set, Bundle: b}, nil
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

// choose finds the named bundle, or the best that this machine can run, and what the machine has.
func (h Hardware) choose() (*bundle.Bundle, []string, error) {
	if h.Name != "" {
		i := slices.IndexFunc(h.Bundles, func(b *bundle.Bundle) bool { return b.Hardware == h.Name })
		if i < 0 {
			return nil, nil, fmt.Errorf("this program has no kernels for %q (it has: %s)", h.Name, h.names())
		}
		present, err := h.Features(h.Bundles[i].Device)
		return h.Bundles[i], present, err
	}
	for _, built := range []bool{true, false} { // kernels that are not built are worth an error only where none are
		for _, b := range h.Bundles {
			present, err := h.Features(b.Device)
			if err == nil && len(b.Missing(present)) == 0 && (b.Built() || h.Kernels != "" || !built) {
				return b, present, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("this machine can run none of the kernels that this program has: %s", h.names())
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

// memory is what the device has free and in all, and the file of the control group that bounds it, if one does.
func (t *Target) memory() (free, total int64, limit string) {
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
