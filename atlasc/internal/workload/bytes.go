package workload

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
	"github.com/atlas-inference/atlas/atlasc/internal/expr"
)

// Sizes tell what the contract leaves to a hardware.
type Sizes struct {
	Act    int64                        // bytes of an activation
	Packed func(rows, cols int64) int64 // bytes of a matrix of the call's scheme
}

// Bytes is what a call must move at least: each buffer once, or twice where it is read and written, and of stacked
// weights and of caches only what it touches. Optional buffers count as absent, and the experts of a batch as all
// different as long as there are enough.
func (c Call) Bytes(contracts *contract.Contract, sizes Sizes) (int64, error) {
	op := contracts.Op(c.Op)
	if op == nil {
		return 0, fmt.Errorf("package op has no operation %s", c.Op)
	}
	scope := expr.OpScope(contracts, op, nil, nil)
	total := int64(0)
	for _, f := range op.Fields {
		switch {
		case f.Kind == contract.WeightField:
			total += c.weightBytes(sizes)
		case f.Kind != contract.Pointer || f.Optional:
		case f.Name == "K" || f.Name == "V":
			total += c.cacheBytes()
		default:
			n, err := c.elements(scope, f)
			if err != nil {
				return 0, err
			}
			if f.Role == contract.InOut {
				n *= 2
			}
			total += n * c.elementBytes(f.Elem, sizes)
		}
	}
	return total, nil
}

// elements is how many elements a buffer has, without the gaps of pitches.
func (c Call) elements(scope *expr.Scope, f contract.Field) (int64, error) {
	n := int64(1)
	for _, d := range f.Dims {
		e, err := scope.Int(d.Size)
		if err != nil {
			return 0, fmt.Errorf("%s.%s: %w", c.Op, f.Name, err)
		}
		size, known := e.IntAt(c.Args)
		if !known {
			return 0, fmt.Errorf("the size of %s.%s, %s, is not known", c.Op, f.Name, d.Size)
		}
		n *= size
	}
	return n, nil
}

// weightBytes are those of the rows or matrices that the call reads.
func (c Call) weightBytes(sizes Sizes) int64 {
	one := sizes.Packed(c.Args["W.Rows"], c.Args["W.Cols"])
	switch {
	case c.Op == "Embedding":
		return one * min(c.Args["Rows"], c.Args["W.Rows"]) / max(c.Args["W.Rows"], 1)
	case c.Args["TopK"] > 0:
		return one * min(c.Args["Rows"]*c.Args["TopK"], c.Args["W.Count"])
	}
	return one * max(c.Args["W.Count"], 1)
}

// cacheBytes are those of the keys, or of the values, that the call reads or writes.
func (c Call) cacheBytes() int64 {
	tokens := c.Tokens
	if c.Op == "RotaryCache" {
		tokens = c.Args["Rows"]
	}
	return tokens * c.Args["KVHeads"] * c.Args["HeadDim"] * 2
}

// elementBytes is the size of an element by its name in a tag; fields that tell a type are those of caches.
func (c Call) elementBytes(elem string, sizes Sizes) int64 {
	switch elem {
	case "act":
		return sizes.Act
	case "f32", "i32", "u32":
		return 4
	case "i64":
		return 8
	case "bf16":
		return 2
	case "u8":
		return 1
	}
	return 2
}

// Flops are the products and sums of a call's matrix, twice the pairs of numbers that meet; 0 where they do not matter.
func (c Call) Flops() int64 {
	if c.Args["W.Cols"] == 0 || c.Op == "Embedding" {
		return 0
	}
	return 2 * c.Args["Rows"] * max(c.Args["TopK"], 1) * c.Args["W.Rows"] * c.Args["W.Cols"]
}
