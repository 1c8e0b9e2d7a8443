package main

import "testing"

// What begins a pass waits for the whole step before it and for its inputs; kernels behind it read earlier steps' keys before they wait.
func TestAPassBeginsWithASerialLaunch(t *testing.T) {
	p, err := load("..", everything)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, h := range p.plan.Hardware {
		for _, e := range h.Entries {
			if h.Device != "cuda" || e.Op.Name != "Embedding" {
				continue
			}
			if seen++; !e.Launches[0].Serial {
				t.Errorf("%s: %s is not serial", h.Name, e.Name)
			}
		}
	}
	if seen == 0 {
		t.Error("there is no embedding for a GPU")
	}
}

// BenchmarkLoad measures what a build with nothing to do costs, on the real tree.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := load("..", everything); err != nil {
			b.Fatal(err)
		}
	}
}
