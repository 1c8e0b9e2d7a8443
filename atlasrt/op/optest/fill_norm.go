package optest

import (
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// tied is how far a normalised number must be from the middle between two bf16 numbers, in steps between the two, so that every correct
// sum in f32 rounds it to the same one.
const tied = 0x1p-12

// untie changes the inputs of a norm whose result is rounded to bf16 and then multiplied, until no normalised number lies so near the
// middle between two that correct kernels may round it differently. One such number would change all products of its row.
func (c *Case) untie(list []field, all contents) {
	rounded := slices.ContainsFunc(list, func(f field) bool { return f.name == "In" && f.dtype == op.BF16 })
	if c.Op != "NormLinear" && c.Op != "GatedLinear" || all["Scale"] == nil || !rounded {
		return
	}
	w, _ := c.weight()
	rows, cols, eps := int(c.args.FieldByName("Rows").Int()), int(w.Cols), c.args.FieldByName("Eps").Float()
	in, residual, scale := decoded(all["In"], op.BF16), decoded(all["Residual"], op.BF16), decoded(all["Scale"], op.F32)
	for r := range rows {
		row := norm{in: in[r*cols : (r+1)*cols], scale: scale, eps: eps}
		if residual != nil {
			row.residual = residual[r*cols : (r+1)*cols]
		}
		for row.move() {
		}
	}
	oracle.Encode(all["In"], op.BF16, in)
}

// norm is one row that is normalised.
type norm struct {
	in, residual, scale []float64
	eps                 float64
}

// input is element k of the row that is normalised: the input, or its sum with the residual, rounded to bf16.
func (n norm) input(k int) float64 {
	if n.residual == nil {
		return n.in[k]
	}
	step := 2 * halfStep(n.in[k]+n.residual[k], op.BF16)
	return math.RoundToEven((n.in[k]+n.residual[k])/step) * step
}

// steps is how far each normalised number is from the middle between two bf16 numbers, in steps between the two.
func (n norm) steps() []float64 {
	sum := 0.0
	for k := range n.in {
		sum += n.input(k) * n.input(k)
	}
	inverse := 1 / math.Sqrt(sum/float64(len(n.in))+n.eps)
	list := make([]float64, len(n.in))
	for k := range list {
		y := n.input(k) * inverse * n.scale[k]
		y /= 2 * halfStep(y, op.BF16)
		list[k] = math.Abs(y - math.Floor(y) - 0.5)
	}
	return list
}

// move changes the inputs whose results are tied, and reports whether there were any.
func (n norm) move() (moved bool) {
	for k, from := range n.steps() {
		if from < tied {
			n.in[k] += math.Copysign(2*max(halfStep(n.input(k), op.BF16), halfStep(n.in[k], op.BF16)), n.input(k))
			moved = true
		}
	}
	return moved
}
