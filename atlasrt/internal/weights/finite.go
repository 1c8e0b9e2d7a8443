package weights

import (
	"encoding/binary"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Finite looks for NaN and infinities: in the elements of a float type, in the scales and minimums of a GGUF block type.
// Other types have none. The error names the tensor and the first bad element, or block.
func Finite(t Tensor) error {
	place, what := -1, "element"
	err := mapping.Guard(func() error {
		switch t.Type {
		case tensor.F64:
			place = firstBad(t.Data, 8, func(b []byte) bool { return binary.LittleEndian.Uint64(b)>>52&0x7ff == 0x7ff })
		case tensor.F32:
			place = firstBad(t.Data, 4, func(b []byte) bool { return binary.LittleEndian.Uint32(b)>>23&0xff == 0xff })
		case tensor.BF16:
			place = firstBad(t.Data, 2, func(b []byte) bool { return binary.LittleEndian.Uint16(b)>>7&0xff == 0xff })
		case tensor.F16:
			place = firstBad(t.Data, 2, badHalf)
		case tensor.F8_E4M3:
			place = firstBadE4M3(t.Data)
		case tensor.F8_E5M2:
			place = firstBad(t.Data, 1, func(b []byte) bool { return b[0]&0x7c == 0x7c })
		case tensor.F8_E4M3FNUZ, tensor.F8_E5M2FNUZ:
			place = firstBad(t.Data, 1, func(b []byte) bool { return b[0] == 0x80 })
		case tensor.F8_E8M0:
			place = firstBad(t.Data, 1, func(b []byte) bool { return b[0] == 0xff })
		default:
			what = "block"
			place = firstBadBlock(t)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%v: %w", t.Info, err)
	}
	if place >= 0 {
		return fmt.Errorf("%v: %s %d is NaN or infinite: the file is damaged", t.Info, what, place)
	}
	return nil
}

// firstBadE4M3 looks at 32 bytes at a time, since these are all codes of some checkpoints: seven ones are the only bits that one
// more carries out of.
func firstBadE4M3(data []byte) int {
	const sevens, ones, tops = 0x7f7f7f7f7f7f7f7f, 0x0101010101010101, 0x8080808080808080
	i := 0
	more := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b)&sevens + ones }
	for ; i+32 <= len(data); i += 32 {
		if b := data[i : i+32]; (more(b)|more(b[8:])|more(b[16:])|more(b[24:]))&tops != 0 {
			break
		}
	}
	if place := firstBad(data[i:], 1, func(b []byte) bool { return b[0]&0x7f == 0x7f }); place >= 0 {
		return i + place
	}
	return -1
}

func badHalf(b []byte) bool { return binary.LittleEndian.Uint16(b)>>10&0x1f == 0x1f }

// firstBadBlock checks the half-precision scales of block types, which stand first in a block but for Q6_K.
func firstBadBlock(t Tensor) int {
	_, block := t.Type.Block()
	switch t.Type {
	case tensor.Q4_0, tensor.Q5_0, tensor.Q8_0, tensor.IQ4_NL:
		return firstBad(t.Data, int(block), badHalf)
	case tensor.Q4_1, tensor.Q5_1, tensor.Q4_K, tensor.Q5_K:
		return firstBad(t.Data, int(block), func(b []byte) bool { return badHalf(b) || badHalf(b[2:]) })
	case tensor.Q6_K:
		return firstBad(t.Data, int(block), func(b []byte) bool { return badHalf(b[block-2:]) })
	}
	return -1
}

// firstBad is the number of the first group of width bytes that is bad, or -1.
func firstBad(data []byte, width int, bad func([]byte) bool) int {
	for i := 0; i+width <= len(data); i += width {
		if bad(data[i : i+width]) {
			return i / width
		}
	}
	return -1
}
