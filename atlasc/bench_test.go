package main

import (
	"strings"
	"testing"
)

func TestMachine(t *testing.T) {
	cases := []struct{ cpuinfo, want string }{
		{"processor\t: 0\nmodel name\t: A CPU\n\nprocessor\t: 1\nmodel name\t: A CPU\n", "2 × A CPU"},
		{"processor\t: 0\nFeatures\t: asimd\n", "1 × unknown processor"},
		{"", "0 × unknown processor"},
	}
	for _, c := range cases {
		if got := machine(c.cpuinfo); !strings.HasPrefix(got, c.want) { // a GPU may follow
			t.Errorf("%q: got %q, want %q", c.cpuinfo, got, c.want)
		}
	}
}

func TestProcessorFeatures(t *testing.T) {
	cases := []struct{ cpuinfo, want string }{
		{"flags\t\t: sse2 avx2\nflags\t\t: other\n", "sse2 avx2"},
		{"Features\t: asimd crc32\n", "asimd crc32"},
		{"model name: x\n", ""},
	}
	for _, c := range cases {
		if got := strings.Join(processorFeatures(c.cpuinfo), " "); got != c.want {
			t.Errorf("%q: got %q, want %q", c.cpuinfo, got, c.want)
		}
	}
}

func TestSchemeOf(t *testing.T) {
	cases := []struct{ name, want string }{
		{"SmolLM2-135M q4_1 qkv 960×576 rows 1", "q4_1"},
		{"bf16 64×64 rows 1", "bf16"},
		{"hidden rows 1", ""},
	}
	for _, c := range cases {
		if got := schemeOf(c.name); got != c.want {
			t.Errorf("%q: got %q, want %q", c.name, got, c.want)
		}
	}
}
