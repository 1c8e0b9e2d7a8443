package main

import "testing"

// BenchmarkLoad measures what a build with nothing to do costs, on the real tree.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := load("..", everything); err != nil {
			b.Fatal(err)
		}
	}
}
