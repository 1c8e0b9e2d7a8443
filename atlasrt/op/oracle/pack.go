package oracle

import "github.com/atlas-inference/atlas/atlasrt/op"

// PackedBytes is the checkpoint's own size: packing is copying.
func (*Set) PackedBytes(scheme op.Scheme, rows, cols int32) int64 {
	return packedBytes(scheme, rows, cols)
}

func packedBytes(scheme op.Scheme, rows, cols int32) int64 {
	if scheme.String() == "unknown" || rows < 0 || cols < 0 || int64(cols)%scheme.Block() != 0 {
		return 0
	}
	return scheme.RawBytes(int64(rows), int64(cols))
}

// Pack copies the checkpoint's bytes.
func (*Set) Pack(q op.Stream, x op.Pack) {
	if known(q, "Pack", x.W) {
		copy(slice[byte](x.W.Data, int(packedBytes(x.W.Scheme, x.W.Rows, x.W.Cols))), slice[byte](x.Raw, int(x.Bytes)))
	}
}

// Unpack copies them back.
func (*Set) Unpack(q op.Stream, x op.Unpack) {
	if known(q, "Unpack", x.W) {
		copy(slice[byte](x.Raw, int(x.Bytes)), slice[byte](x.W.Data, int(packedBytes(x.W.Scheme, x.W.Rows, x.W.Cols))))
	}
}
