package optest

import (
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Work is the bytes that a call, an op's struct, must read and write at least, and the floating-point operations of its products, on a set
// with activations of type act.
//
// Optional buffers count where their addresses are not zero. The contents of buffers are assumed: each sequence has context tokens and the
// same share of the rows, and picks go to as many different experts as there are.
func Work(kernels bundle.Set, act op.DType, args any, context int) (bytes, flops int64, err error) {
	c, list, err := called(kernels, act, args)
	if err != nil {
		return 0, 0, err
	}
	number := func(name string) int64 { return c.args.FieldByName(name).Int() }
	for _, f := range list {
		if f.name != "Lengths" && f.name != "Starts" || f.role != in {
			continue
		}
		values := make([]int32, f.count*f.inner)
		switch {
		case f.name == "Lengths":
			for i := range values {
				values[i] = int32(context)
			}
		case c.args.FieldByName("Seqs").IsValid():
			for i := range values {
				values[i] = int32(number("Rows") * int64(i) / number("Seqs"))
			}
		default: // of experts: each has one pick, from the first on, and the last one has the rest
			picks := number("Rows") * number("TopK")
			for i := range values {
				values[i] = int32(min(int64(i), picks))
			}
			values[len(values)-1] = int32(picks)
		}
		set(c, f.name, values)
	}
	bytes, flops = c.work(list)
	return bytes, flops, nil
}

// called makes a case of a call, an op's struct with addresses, and lists its buffers.
func called(kernels bundle.Set, act op.DType, args any) (*Case, []field, error) {
	c := &Case{Op: reflect.TypeOf(args).Name(), args: reflect.ValueOf(args), given: map[string]bool{}, values: map[string][]byte{}}
	for _, name := range c.matrices() {
		c.given[name+".Scale"] = c.matrix(name).Scale != 0
	}
	for i := range c.args.NumField() {
		if f := c.args.Field(i); f.Type() == reflect.TypeFor[op.Ptr]() {
			c.given[c.args.Type().Field(i).Name] = !f.IsZero()
		}
	}
	list, err := c.fields(act, func(w op.Weight) int64 { return kernels.PackedBytes(w.Scheme, w.Rows, w.Cols) })
	return c, list, err
}

// work is the bytes and the floating-point operations of a call. A buffer counts once, or twice where it is read and written; of stacked
// weights, embeddings, caches and states only the part counts that the call needs.
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
	// only counts the weights of some rows or experts, and not those of all.
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
	case op.CausalConv:
		bytes -= 2*size["State"] - c.rings(x.Width, x.MaxDrafts, size["State"])
		flops = 2 * int64(x.Rows) * int64(x.Channels) * int64(x.Width)
	case op.DeltaRule:
		bytes -= 2*(size["State"]+size["Journal"]) - c.touched(size["State"], size["Journal"], x.MaxDrafts)
		flops = 6 * int64(x.Rows) * int64(x.ValueHeads) * int64(x.ValueDim) * int64(x.KeyDim)
	case op.DeltaNet:
		bytes -= 2*(size["Window"]+size["State"]+size["Journal"]) - c.rings(x.Width, x.MaxDrafts, size["Window"]) - c.touched(size["State"], size["Journal"], x.MaxDrafts)
		channels := 2*int64(x.KeyHeads)*int64(x.KeyDim) + int64(x.ValueHeads)*int64(x.ValueDim)
		flops = int64(x.Rows) * (2*channels*int64(x.Width) + 6*int64(x.ValueHeads)*int64(x.ValueDim)*int64(x.KeyDim))
	case op.PagedAttention:
		pairs, tokens := c.attended(int64(x.Window))
		bytes -= size["K"] + size["V"] - 2*tokens*int64(x.KVHeads*x.HeadDim)*x.KVType.Bytes()
		flops = 4 * pairs * int64(x.Heads*x.HeadDim)
	}
	return bytes, flops
}

// attended counts the pairs of a row and a token that it sees, and the tokens that are seen by any row.
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

// rings is the bytes of the latest inputs that a convolution reads and writes: all rings have so many bytes. The first rows of a sequence read
// fewer.
func (c *Case) rings(width, drafts int32, all int64) int64 {
	starts, lengths, rows := get[int32](c.values["Starts"]), get[int32](c.values["Lengths"]), int32(0)
	for s, length := range lengths {
		if n := starts[s+1] - starts[s]; n > 0 {
			rows += min(max(length-n, 0), width-1) + min(n, width+drafts)
		}
	}
	return all / max(int64(c.number("Slots"))*int64(width+drafts), 1) * int64(rows)
}

// touched is the bytes of states and journals that the delta rule reads and writes, given those of all. A sequence's first step reads no state.
func (c *Case) touched(states, journals int64, drafts int32) int64 {
	starts, lengths := get[int32](c.values["Starts"]), get[int32](c.values["Lengths"])
	drafted, accepted := get[int32](c.values["Drafts"]), get[int32](c.values["Accepted"])
	slots, passes, journaled := max(int64(c.number("Slots")), 1), int64(0), int64(0)
	for s, length := range lengths {
		n := starts[s+1] - starts[s]
		if n == 0 {
			continue
		}
		if passes++; length > n {
			passes++
		}
		if s < len(drafted) {
			journaled += int64(drafted[s] + accepted[s])
		}
	}
	return states/slots*passes + journals/(slots*int64(2*drafts+1))*journaled
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
