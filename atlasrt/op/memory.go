package op

// Packer turns matrices from a checkpoint's bytes into the layout of a kernel set.
type Packer interface {
	Pack(Stream, Pack)
	Unpack(Stream, Unpack)
	// PackedBytes is the size of one packed matrix; zero where the set has no kernels for the scheme.
	PackedBytes(scheme Scheme, rows, cols int32) int64
}

// Memory moves and converts plain buffers.
type Memory interface {
	Copy(Stream, Copy)
	Fill(Stream, Fill)
	Convert(Stream, Convert)
}

// Pack writes matrix 0 of W, in the set's layout, from the Bytes at Raw: the matrix as a checkpoint stores it, see Scheme.
type Pack struct {
	W     Weight `atlas:"out"`
	Raw   Ptr    `atlas:"in u8 [Bytes]"`
	Bytes int64
}

// Unpack writes the checkpoint's bytes of matrix 0 of W, Bytes of them, to Raw, every bit as it was. NVFP4 is an exception: there scales
// may lose their sign, which goes to their codes, and codes whose scale is zero may become zeros. The weights are the same numbers.
type Unpack struct {
	Raw   Ptr    `atlas:"out u8 [Bytes]"`
	W     Weight `atlas:"in"`
	Bytes int64
}

// Copy copies Bytes between buffers that do not overlap.
type Copy struct {
	Out   Ptr   `atlas:"out u8 [Bytes]"`
	In    Ptr   `atlas:"in u8 [Bytes]"`
	Bytes int64 `atlas:"step"`
}

// Fill sets Count 32-bit words to Value.
type Fill struct {
	Out   Ptr `atlas:"out u32 [Count]"`
	Count int64
	Value uint32
	_     int32
}

// Convert changes the element type of Count numbers, rounding once to nearest even. InType and OutType are F32, BF16 or F16.
type Convert struct {
	Out     Ptr `atlas:"out OutType [Count]"`
	In      Ptr `atlas:"in InType [Count]"`
	Count   int64
	OutType DType
	InType  DType
}
