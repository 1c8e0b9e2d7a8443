package cpu

import (
	"slices"
	"testing"
)

// The bits as Linux's uapi/asm/hwcap.h for arm64 has them.
func TestNamesOfBits(t *testing.T) {
	cases := []struct {
		bit   int
		names []string
		want  string
	}{
		{1, hwcapNames[:], "asimd"},
		{7, hwcapNames[:], "crc32"},
		{8, hwcapNames[:], "atomics"},
		{12, hwcapNames[:], "asimdrdm"},
		{20, hwcapNames[:], "asimddp"},
		{22, hwcapNames[:], "sve"},
		{31, hwcapNames[:], "pacg"},
		{1, hwcap2Names[:], "sve2"},
		{13, hwcap2Names[:], "i8mm"},
		{14, hwcap2Names[:], "bf16"},
		{18, hwcap2Names[:], "mte"},
	}
	for _, c := range cases {
		if got := set(1<<c.bit, c.names); !slices.Equal(got, []string{c.want}) {
			t.Errorf("bit %d: got %v, want %s", c.bit, got, c.want)
		}
	}
}
