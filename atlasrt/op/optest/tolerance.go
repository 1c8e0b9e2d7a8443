package optest

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Tolerances are relative errors of a row, as compare measures them.
const (
	// sumsF32 is for sums and exponentials in f32: rounding errors of 2⁻²⁴ that add up like a random walk over 8192
	// terms come to 3e-6.
	sumsF32 = 1e-5
	// rowsF32 is for states in f32 to which row after row is added. Each row rounds a few times, and as the state decays so do older errors: they
	// come to a few times 2⁻²⁴ over any number of rows.
	rowsF32 = 3e-6
	// roundBF16 is for results or factors that are rounded to bf16: an error of up to 2⁻⁹ each.
	roundBF16 = 4e-3
	// beforeRounding is for results that are rounded to bf16 once, as the oracle rounds them. The rounding itself does not count (see
	// compare). What is left is the error of a sum in f32 or, for products of e4m3, in the about 14 bits that tensor cores add with.
	beforeRounding = 1e-3
	// roundInt8 is for activations that are rounded to bytes, with more bits for blocks that stand out of their row. The largest value of
	// a block is at most √12 root mean squares of its row, else the block has more bits; a step is a 127th of it. An error of rounding has
	// a root mean square of a step/√12. So a row's error is at most 0.8e-2 in the mean, and up to twice that in rows of a few results.
	roundInt8 = 2e-2
	// roundInt8Apart is the same for NVFP4. Its scales are tensors of their own, and those of a row lie up to three powers of two apart (see
	// fill_apart.go): a few blocks make most of a result, and of its error.
	roundInt8Apart = 1.5 * roundInt8
	// roundRest is for blocks that stand out of their rows, whose values have fifteen bits: a step is a 254th of that of roundInt8.
	roundRest = 8e-5
	// gated is how much larger an error becomes where two results are multiplied, one of which went through a sigmoid.
	gated = 2
)

// tolerance is how far one of the target's results may be from the oracle's.
func (t *Target) tolerance(c *Case, result field) float64 {
	limit := sumsF32
	switch x := c.args.Interface().(type) {
	case op.RotaryAngles: // the angle itself is a product in f32
		limit += largestAngle(c) * 0x1p-24
	case op.Linear:
		limit = max(limit, t.products(x.W.Scheme))
	case op.NormLinear:
		limit = max(limit, t.products(x.W.Scheme))
	case op.GatedLinear:
		limit = max(limit, gated*t.products(x.W.Scheme))
		if t.Act == op.BF16 { // the halves are rounded before they are multiplied
			limit = max(limit, gated*roundBF16)
		}
	case op.NormRoute:
		if t.Act == op.BF16 && result.name == "Weights" { // a logit of up to 4 may round the other way
			limit = max(limit, 4*roundBF16)
		}
	case op.NormRouteUp:
		if limit = max(limit, gated*t.products(x.W.Scheme)); t.Act == op.BF16 && result.name == "Weights" { // as NormRoute's
			limit = max(limit, 4*roundBF16)
		}
	case op.Logits:
		limit = max(limit, t.products(x.W.Scheme))
	case op.ExpertUp:
		limit = max(limit, gated*t.products(x.W.Scheme))
	case op.ExpertDown:
		limit = max(limit, t.products(x.W.Scheme))
	case op.LinearAdd:
		limit = max(limit, t.added(x.W.Scheme))
	case op.ExpertDownAdd:
		limit = max(limit, t.added(x.W.Scheme))
	case op.ExpertDownNorm:
		limit = max(limit, t.added(x.W.Scheme))
	case op.PagedAttention:
		if x.KVType == op.BF16 {
			limit = max(limit, t.products(op.SchemeBF16))
		}
		if x.KVType == op.BF16 && t.Act == op.BF16 { // the weights of the keys are factors in bf16 as well, and then the result
			limit = max(limit, 1.5*roundBF16)
		}
	case op.DeltaRule:
		limit = max(rowsF32, t.chunked(c))
	case op.DeltaNet:
		if limit = max(limit, t.chunked(c)); t.Act == op.BF16 { // what the plain operations hand on is rounded: each of the three may round the other way
			limit = max(limit, roundBF16)
			if result.name == "State" { // a row that holds little but one value, which may be off by a step, of up to 2⁻⁷
				limit = max(limit, 2*roundBF16)
			}
		}
	case op.RotaryCache: // kernels may round to the activation type before they round to the cache's
		if t.Act == op.BF16 {
			limit = roundBF16
		}
	}
	if result.dtype == op.BF16 {
		limit = max(limit, beforeRounding)
	}
	if c.peaked && t.Act == op.F32 {
		limit = min(limit, roundRest)
	}
	return limit
}

// Errors of sums are distributed normally. In a product of two results, the error of one is multiplied by the other, so that a few large
// products have most of a row's error. Such a one may be off by a share of its own size, since each of its factors may be rounded the other
// way, a step of up to 2⁻⁷.
var ofSums, ofProducts = scatter{few: few, peak: 8}, scatter{few: 64, peak: 16, own: 2}

func (c *Case) scatter() scatter {
	switch c.args.Interface().(type) {
	case op.GatedLinear, op.ExpertUp, op.NormRouteUp:
		return ofProducts
	}
	return ofSums
}

// blocks are the schemes that are GGUF's block formats, and inBytes those that meet activations of bytes where activations are f32.
var (
	blocks  = []op.Scheme{op.SchemeQ8_0, op.SchemeQ4_0, op.SchemeQ4_1, op.SchemeQ5_0, op.SchemeQ4_K, op.SchemeQ6_K}
	inBytes = append([]op.Scheme{op.SchemeNVFP4}, blocks...)
)

// products is the error of products with weights of a scheme, beside that of the sums. It comes from making activations and weights one
// type. Targets that are exact have none. Activations in f32 are rounded to bytes for NVFP4 and GGUF's block formats, else to bf16. Activations in
// bf16 are not rounded, but weights of GGUF's block formats may be rounded to bf16; bf16 holds the weights of the other schemes exactly.
func (t *Target) products(scheme op.Scheme) float64 {
	switch block := slices.Contains(blocks, scheme); {
	case t.Exact, t.Act == op.BF16 && !block:
		return 0
	case t.Act != op.BF16 && block:
		return roundInt8
	case t.Act != op.BF16 && scheme == op.SchemeNVFP4:
		return roundInt8Apart
	}
	return roundBF16
}

// added is the error of products that are rounded and then added to something.
func (t *Target) added(scheme op.Scheme) float64 {
	if t.Act == op.BF16 {
		return max(t.products(scheme), roundBF16)
	}
	return t.products(scheme)
}

// chunked is the error of a delta rule in matrix form: for sequences of many rows kernels may multiply factors in bf16, whose rounding errors
// stay in the state: of T, of U and W, of the state, and of what is added to it. Kernels that take one row after the other have none beside
// that of sums.
func (t *Target) chunked(c *Case) float64 {
	const many = 8
	starts := get[int32](c.values["Starts"])
	for s := range len(starts) - 1 {
		if starts[s+1]-starts[s] > many && t.Act == op.BF16 && !t.Exact {
			return 2.5 * roundBF16
		}
	}
	return 0
}

// largestAngle is the largest position times the largest frequency.
func largestAngle(c *Case) float64 {
	position, frequency := slices.Max(get[int32](c.values["Positions"])), slices.Max(get[float32](c.values["Frequency"]))
	return float64(position) * float64(frequency)
}
