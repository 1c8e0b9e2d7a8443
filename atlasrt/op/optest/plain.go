package optest

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// plain brings a checkpoint's bytes to one form where several mean the same weights, so that they can be compared. In NVFP4 the sign of a
// scale moves to its codes, and codes whose scale is zero become zeros.
func plain(scheme op.Scheme, raw []byte) []byte {
	if scheme != op.SchemeNVFP4 {
		return raw
	}
	form := slices.Clone(raw)
	blocks := len(raw) / 9
	codes, scales := form[:8*blocks], form[8*blocks:]
	for i := range scales {
		block := codes[8*i:][:8]
		if scales[i]&0x80 != 0 {
			for j := range block {
				block[j] ^= 0x88
			}
		}
		scales[i] &^= 0x80
		if scales[i] == 0 {
			clear(block)
		}
	}
	return form
}
