package oracle

import "github.com/atlas-inference/atlas/atlasrt/op"

// Resolve looks references up.
func (*Set) Resolve(_ op.Stream, x op.Resolve) {
	sampled := slice[int32](x.Sampled, int(x.Count))
	ids := slice[int32](x.IDs, int(x.Rows))
	for r, id := range ids {
		if id >= 0 {
			continue
		}
		ids[r] = -1
		if at := -1 - int64(id); at < int64(len(sampled)) {
			ids[r] = sampled[at]
		}
	}
}
