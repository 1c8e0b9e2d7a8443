package cpu

import (
	"runtime"
	"slices"
	"testing"
)

// Every Linux on these processors reports what their first models had.
func TestFeatures(t *testing.T) {
	want := map[string]string{"amd64": "sse2", "arm64": "asimd"}[runtime.GOARCH]
	if got := Features(); !slices.Contains(got, want) {
		t.Errorf("got %v, want %s among them", got, want)
	}
}
