package gguf

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// types gives our type for ggml's number; ggml's numbers never change.
var types = map[uint32]tensor.Type{
	0: tensor.F32, 1: tensor.F16, 2: tensor.Q4_0, 3: tensor.Q4_1, 6: tensor.Q5_0, 7: tensor.Q5_1, 8: tensor.Q8_0,
	12: tensor.Q4_K, 13: tensor.Q5_K, 14: tensor.Q6_K, 20: tensor.IQ4_NL,
	24: tensor.I8, 25: tensor.I16, 26: tensor.I32, 27: tensor.I64, 28: tensor.F64, 30: tensor.BF16,
}

// typeName names a type that is not supported, for an error.
func typeName(id uint32) string {
	known := map[uint32]string{
		4: "Q4_2", 5: "Q4_3", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
		21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 34: "TQ1_0", 35: "TQ2_0",
		36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8", 39: "MXFP4",
	}
	if name, ok := known[id]; ok {
		return name
	}
	return fmt.Sprintf("number %d", id)
}

func validName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// cursor reads forward through a file. After the first error it reads zeros and keeps the error.
type cursor struct {
	bytes    []byte
	position int
	err      error
}

func (c *cursor) left() int { return len(c.bytes) - c.position }

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// take gives the next n bytes, nil when there are fewer.
func (c *cursor) take(n uint64) []byte {
	if c.err != nil || n > uint64(c.left()) {
		c.fail(fmt.Errorf("%w: %d bytes wanted at byte %d of %d", ErrTruncated, n, c.position, len(c.bytes)))
		return nil
	}
	start := c.position
	c.position += int(n)
	return c.bytes[start:c.position:c.position]
}

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// text gives the bytes of the string that comes next, which has at most limit bytes.
func (c *cursor) text(limit uint64) []byte {
	n := c.uint64()
	if n > limit {
		c.fail(fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrString, n, limit))
		return nil
	}
	return c.take(n)
}

func (c *cursor) string(limit uint64) string { return string(c.text(limit)) }
