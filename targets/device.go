package targets

import (
	"maps"
	"slices"
)

// Device says what is true of all hardware that one package of atlasrt/device runs.
type Device struct {
	Host    bool // kernels run on the processors that the program runs on, and use their features
	Threads bool // a block has threads, a stack for each and memory that they share, and a launch says how much
}

// devices are the packages of atlasrt/device that run kernels. A further one is a further line.
var devices = map[string]Device{
	"cpu":  {Host: true},
	"cuda": {Threads: true},
}

// Is is what is true of the hardware's device.
func (h *Hardware) Is() Device { return devices[h.Device] }

// deviceNames are the keys of devices, sorted.
func deviceNames() []string { return slices.Sorted(maps.Keys(devices)) }
