package oracle

import "github.com/atlas-inference/atlas/atlasrt/op"

// Resolve copies inputs, and replaces references to sampled tokens by the tokens.
func (*Set) Resolve(_ op.Stream, x op.Resolve) {
	sampled := slice[int32](x.Sampled, int(x.Samples))
	out := slice[int32](x.Out, int(x.Count))
	copy(out, slice[int32](x.In, int(x.Count)))
	for r, id := range out[:x.Rows] {
		if id >= 0 {
			continue
		}
		out[r] = -1
		if at := -1 - int64(id); at < int64(len(sampled)) {
			out[r] = sampled[at]
		}
	}
}
