package op

import (
	"fmt"
	"strings"
)

// Scheme is how the numbers of a weight matrix are stored in a checkpoint.
type Scheme int32

// Schemes. Their numbers are part of the contract. Those named Q are GGUF's block formats: 32 weights along a
// row, or 256 for those that end in K.
//
// Where codes and scales are tensors of their own in a checkpoint, a matrix's raw bytes are all of its codes and then all of its
// block scales, each row-major. Factors of a whole row or matrix are not among them: they become Weight.Scale.
//
// In the formulas below w is the weight, q its code, d the scale of its block.
const (
	// SchemeBF16 is two bytes a weight.
	SchemeBF16 Scheme = iota + 1
	// SchemeQ8_0 is an f16 scale and 32 signed bytes: w = d·q.
	SchemeQ8_0
	// SchemeQ4_0 is an f16 scale and 16 bytes, low nibbles first: w = d·(q-8).
	SchemeQ4_0
	// SchemeQ4_1 is an f16 scale, an f16 minimum and 16 bytes, low nibbles first: w = d·q + m.
	SchemeQ4_1
	// SchemeF8 is one e4m3 byte a weight.
	SchemeF8
	// SchemeF8Block is one e4m3 byte a weight and an f32 scale for each F8BlockRows rows of F8BlockCols columns, both
	// counted from the first and rounded up: w = d·q.
	SchemeF8Block
	// SchemeNVFP4 is 16 e2m1 weights in 8 bytes, the even one in the low nibble, and an e4m3 scale for each 16: w = d·q.
	SchemeNVFP4
	// SchemeQ5_0 is an f16 scale, 32 fifth bits and 16 bytes of the lower four, low nibbles first: w = d·(q-16).
	SchemeQ5_0
	// SchemeQ4_K is an f16 scale d, an f16 scale dmin of minimums, twelve bytes with a scale s and a minimum m of six bits for each group
	// of 32 weights, and 128 bytes of codes, of which 32 hold 64 weights, low nibbles first: w = d·s·q - dmin·m. Of the eight groups, the
	// scales of the first four are the lower six bits of bytes 0 to 3, and their minimums those of bytes 4 to 7. The upper two bits of
	// these bytes belong to the last four groups, whose lower four bits are the nibbles of bytes 8 to 11.
	SchemeQ4_K
	// SchemeQ6_K is 64 bytes of low nibbles for each half of the 256 weights, then 32 bytes of the upper two bits for each half, a signed
	// byte s for each 16 weights, and an f16 scale d: w = d·s·(q-32).
	SchemeQ6_K
)

// Blocks of SchemeF8Block. Checkpoints have a scale for each 128 rows, which is repeated here for each 16: so matrices whose rows are no
// multiple of 128 can be stacked into one.
const (
	F8BlockRows = 16
	F8BlockCols = 128
)

// schemes lists every scheme by its number: its name, the weights of a block along a row, and the bytes of such a block.
var schemes = [...]struct {
	name              string
	block, blockBytes int64
}{
	SchemeBF16:    {"bf16", 1, 2},
	SchemeQ8_0:    {"q8_0", 32, 34},
	SchemeQ4_0:    {"q4_0", 32, 18},
	SchemeQ4_1:    {"q4_1", 32, 20},
	SchemeF8:      {"f8", 1, 1},
	SchemeF8Block: {"f8block", 1, 1},
	SchemeNVFP4:   {"nvfp4", 16, 9},
	SchemeQ5_0:    {"q5_0", 32, 22},
	SchemeQ4_K:    {"q4_k", 256, 144},
	SchemeQ6_K:    {"q6_k", 256, 210},
}

// ParseScheme finds a scheme by the name that manifests use.
func ParseScheme(name string) (Scheme, error) {
	for s, info := range schemes {
		if info.name == name && name != "" {
			return Scheme(s), nil
		}
	}
	var known []string
	for _, info := range schemes[1:] {
		known = append(known, info.name)
	}
	return 0, fmt.Errorf("weight scheme %q is unknown (known: %s)", name, strings.Join(known, ", "))
}

// String is the name that manifests and flags use, such as q4_0; "unknown" where it is none.
func (s Scheme) String() string {
	if s <= 0 || int(s) >= len(schemes) {
		return "unknown"
	}
	return schemes[s].name
}

// Block is how many weights along a row share a scale; cols must be a multiple of it.
func (s Scheme) Block() int64 { return schemes[s].block }

// RawBytes is the size of a rows×cols matrix as a checkpoint stores it: row-major, blocks along the row.
func (s Scheme) RawBytes(rows, cols int64) int64 {
	bytes := rows * (cols / schemes[s].block) * schemes[s].blockBytes
	if s == SchemeF8Block {
		bytes += (rows + F8BlockRows - 1) / F8BlockRows * ((cols + F8BlockCols - 1) / F8BlockCols) * 4
	}
	return bytes
}

// Rounding says how a kernel may round activations before it multiplies them, because the checkpoint was made for that. No kernel has to.
// One that does says so in its manifest (the key rounds), and serves only weights that allow it.
type Rounding int32

// Roundings.
const (
	// RoundingNone keeps activations as they are.
	RoundingNone Rounding = iota
	// RoundingE4M3x128 is e4m3 with a scale for each 128 columns of a row, as oracle.RoundE4M3 has it.
	RoundingE4M3x128
	// RoundingE4M3xRow is the same with a scale for each row.
	RoundingE4M3xRow
)

// Weight is one packed matrix, or Count of them stacked, in the layout that the hardware's kernels read.
//
// The layout follows from Scheme, Rows and Cols alone: every kernel of a set that serves a scheme reads the same
// bytes. Pack makes them, Unpack gives the checkpoint's back.
type Weight struct {
	Data     Ptr      // packed codes and block scales of matrix 0
	Scale    Ptr      // f32 [Count,Rows]: a factor of each row, beside the scales of blocks; 0: all are one
	Stride   int64    // bytes from one stacked matrix to the next
	Scheme   Scheme   // of every matrix
	Rows     int32    // outputs
	Cols     int32    // inputs
	Count    int32    // stacked matrices; experts have many
	Rounding Rounding // how kernels may round activations
	_        int32
}
