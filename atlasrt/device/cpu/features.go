//go:build !arm64

package cpu

import (
	"os"
	"strings"
)

// Features names what this processor and its kernel offer, in Linux's words ("avx2", "avx512_vnni").
func Features() []string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "flags" {
			return strings.Fields(value)
		}
	}
	return nil
}
