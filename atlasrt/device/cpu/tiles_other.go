//go:build !amd64

package cpu

import "errors"

// AllowTiles fails: only x86-64 has AMX.
func AllowTiles() error { return errors.New("this processor has no AMX") }
