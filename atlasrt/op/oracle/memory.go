package oracle

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Copy copies bytes.
func (*Set) Copy(_ op.Stream, x op.Copy) {
	copy(slice[byte](x.Out, int(x.Bytes)), slice[byte](x.In, int(x.Bytes)))
}

// Fill repeats a word.
func (*Set) Fill(_ op.Stream, x op.Fill) {
	words := slice[uint32](x.Out, int(x.Count))
	for i := range words {
		words[i] = x.Value
	}
}

// Convert changes the element type.
func (*Set) Convert(q op.Stream, x op.Convert) {
	for _, t := range []op.DType{x.InType, x.OutType} {
		if t != op.F32 && t != op.BF16 && t != op.F16 {
			q.Fail(fmt.Errorf("Convert: %s is not f32, bf16 or f16", t))
			return
		}
	}
	parallel(int(x.Count), func(from, to int) {
		Encode(span(x.Out, x.OutType, from, to-from), x.OutType, load(x.In, x.InType, from, to-from))
	})
}
