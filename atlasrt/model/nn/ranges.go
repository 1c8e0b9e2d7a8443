package nn

import (
	"errors"
	"fmt"
)

// ranges collects what is wrong with the settings of a config.
type ranges struct{ errs []error }

func (r *ranges) fail(format string, arguments ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, arguments...))
}

// within checks that a setting is one of low to high.
func (r *ranges) within(name string, value, low, high int32) {
	if value < low || value > high {
		r.fail("%s is %d (it must be between %d and %d)", name, value, low, high)
	}
}

func (r *ranges) ok() bool { return len(r.errs) == 0 }

func (r *ranges) err() error { return errors.Join(r.errs...) }

// MostLayers bounds num_hidden_layers.
const MostLayers = 1 << 12

// flag is how operations write a bool.
func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
