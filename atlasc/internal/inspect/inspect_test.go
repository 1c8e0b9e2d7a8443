package inspect

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestImage(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip("needs gcc")
	}
	dir := t.TempDir()
	source := `#include <math.h>
#include <stdlib.h>
extern int elsewhere(void);
float shown(float x) { return sinf(x) + abs(elsewhere()); }
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
`
	if err := os.WriteFile(filepath.Join(dir, "a.c"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(dir, "a.so")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", image, filepath.Join(dir, "a.c"), "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Image(data)
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := r.Function("shown"); !ok || f.Code == 0 {
		t.Errorf("shown: got %+v, %v", f, ok)
	}
	if _, ok := r.Function("hidden"); ok {
		t.Error("hidden: got exported")
	}
	if want := []string{"elsewhere"}; !slices.Equal(r.Undefined, want) {
		t.Errorf("undefined: got %v, want %v", r.Undefined, want)
	}
	if _, err := Image([]byte("no image")); err == nil {
		t.Error("no image: want an error")
	}
}
