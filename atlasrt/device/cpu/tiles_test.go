package cpu

import (
	"slices"
	"testing"
)

// TestAllowTiles asks for what this machine may or may not have: one without AMX refuses, and asking twice changes nothing.
func TestAllowTiles(t *testing.T) {
	first := AllowTiles()
	if !slices.Contains(Features(), "amx_tile") {
		if first == nil {
			t.Error("no AMX: got no error")
		}
		return
	}
	if again := AllowTiles(); (first == nil) != (again == nil) {
		t.Errorf("got %v, then %v", first, again)
	}
}
