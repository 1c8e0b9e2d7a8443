package optest

import (
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// work is the bytes and products of a call: each buffer once, or twice where it is read and written, and of stacked
// weights and caches only what the call has to touch.
func (c *Case) work(fields []field) (bytes, flops int64) {
	size := map[string]int64{}
	for _, f := range fields {
		size[f.name] = f.bytes()
		n := int64(f.count) * int64(f.inner) * f.dtype.Bytes()
		if f.role == inout {
			n *= 2
		}
		bytes += n
	}
	w, _ := c.weight()
	products := 2 * int64(w.Rows) * int64(w.Cols)
	// The weights of only so many rows or experts of all are read.
	only := func(some, all int64) { bytes -= size["W.Data"] - size["W.Data"]*min(some, all)/max(all, 1) }
	switch x := c.args.Interface().(type) {
	case op.Linear:
		flops = products * int64(x.Rows)
	case op.NormLinear:
		flops = products * int64(x.Rows)
	case op.GatedLinear:
		flops = products * int64(x.Rows)
	case op.NormRoute:
		flops = products * int64(x.Rows)
	case op.LinearAdd:
		flops = products * int64(x.Rows)
	case op.Logits:
		flops = products * int64(x.Rows)
	case op.Embedding:
		only(int64(x.Rows), int64(w.Rows))
	case op.ExpertUp:
		only(c.used(), int64(w.Count))
		flops = products * int64(x.Rows*x.TopK)
	case op.NormRouteUp:
		only(min(int64(x.Rows*x.TopK), int64(w.Count)), int64(w.Count))
		flops = products*int64(x.Rows*x.TopK) + 2*int64(x.Router.Rows)*int64(x.Router.Cols)*int64(x.Rows)
	case op.ExpertDown:
		only(c.used(), int64(w.Count))
		flops = products * int64(x.Rows*x.TopK)
	case op.ExpertDownAdd:
		only(c.used(), int64(w.Count))
		flops = products * int64(x.Rows*x.TopK)
	case op.ExpertDownNorm:
		only(c.used(), int64(w.Count))
		flops = products * int64(x.Rows*x.TopK)
	case op.RotaryCache:
		bytes -= 2*size["K"] + 2*size["V"] - 2*int64(x.Rows*x.KVHeads*x.HeadDim)*x.KVType.Bytes()
	case op.PagedAttention:
		pairs, tokens := c.attended(int64(x.Window))
		bytes -= size["K"] + size["V"] - 2*tokens*int64(x.KVHeads*x.HeadDim)*x.KVType.Bytes()
		flops = 4 * pairs * int64(x.Heads*x.HeadDim)
	}
	return bytes, flops
}

// attended counts the pairs of a row and a token that it sees, and the tokens that any row sees.
func (c *Case) attended(window int64) (pairs, tokens int64) {
	starts, lengths := get[int32](c.values["Starts"]), get[int32](c.values["Lengths"])
	for s, length := range lengths {
		rows, n := int64(starts[s+1]-starts[s]), int64(length)
		if rows == 0 {
			continue
		}
		seen := n // by a row, at most
		if window > 0 {
			seen = window
		}
		tokens += min(n, rows-1+seen)
		for position := n - rows; position < n; position++ {
			pairs += min(position+1, seen)
		}
	}
	return pairs, tokens
}

// used is how many experts have a pick.
func (c *Case) used() int64 {
	n, starts := int64(0), get[int32](c.values["Starts"])
	for e := range max(len(starts), 1) - 1 {
		if starts[e+1] > starts[e] {
			n++
		}
	}
	return n
}
