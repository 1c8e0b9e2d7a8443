package oracle

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Embedding gathers rows of a matrix.
func (s *Set) Embedding(q op.Stream, x op.Embedding) {
	if !known(q, "Embedding", x.W) {
		return
	}
	row := make([]float64, x.W.Cols)
	for r, id := range slice[int32](x.IDs, int(x.Rows)) {
		if id < 0 || id >= x.W.Rows {
			clear(row)
		} else {
			weightRow(row, x.W, 0, int(id))
		}
		s.store(x.Out, s.act, r*len(row), row)
	}
}

// RMSNorm normalises rows. The sum with the residual is rounded to the activation type before it is normalised, so that the norm and the
// next block read the same numbers.
func (s *Set) RMSNorm(_ op.Stream, x op.RMSNorm) {
	cols := int(x.Cols)
	scale := load(x.Scale, op.F32, 0, cols)
	for r := range int(x.Rows) {
		row := load(x.In, s.act, r*cols, cols)
		if x.Residual != 0 {
			for c, before := range load(x.Residual, s.act, r*cols, cols) {
				row[c] += before
			}
			s.store(x.Residual, s.act, r*cols, row)
			row = load(x.Residual, s.act, r*cols, cols)
		}
		normalise(row, scale, x.Eps)
		s.store(x.Out, s.act, r*cols, row)
	}
}

func normalise(row, scale []float64, eps float32) {
	inverse := 1 / math.Sqrt(dot(row, row)/float64(len(row))+float64(eps))
	for c := range row {
		row[c] *= inverse * scale[c]
	}
}

// Linear multiplies rows by a matrix.
func (s *Set) Linear(q op.Stream, x op.Linear) {
	if !known(q, "Linear", x.W) {
		return
	}
	rows, cols := int(x.Rows), int(x.W.Cols)
	in := s.factors(x.In, 0, rows, cols)
	bias := make([]float64, x.W.Rows)
	if x.Bias != 0 {
		bias = load(x.Bias, op.F32, 0, len(bias))
	}
	parallel(int(x.W.Rows), func(from, to int) {
		weights := make([]float64, cols)
		for n := from; n < to; n++ {
			weightRow(weights, x.W, 0, n)
			for r := range rows {
				sum := dot(in[r*cols:(r+1)*cols], weights) + bias[n]
				s.store(x.Out, s.act, r*int(x.OutPitch)+n, []float64{sum})
			}
		}
	})
}

// SwiGLU gates rows.
func (s *Set) SwiGLU(_ op.Stream, x op.SwiGLU) {
	cols := int(x.Cols)
	for r := range int(x.Rows) {
		in := load(x.In, s.act, 2*r*cols, 2*cols)
		gate, up := in[:cols], in[cols:]
		for c := range gate {
			gate[c] = silu(gate[c]) * up[c]
		}
		s.store(x.Out, s.act, r*cols, gate)
	}
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

// Logits multiplies chosen rows by the output matrix.
func (s *Set) Logits(q op.Stream, x op.Logits) {
	if !known(q, "Logits", x.W) {
		return
	}
	cols, vocab := int(x.W.Cols), int(x.W.Rows)
	in := make([][]float64, x.Rows) // nil where the index chooses no row
	for i, r := range slice[int32](x.Index, int(x.Rows)) {
		if r >= 0 && r < x.InRows {
			in[i] = s.factors(x.In, int(r), 1, cols)
		}
	}
	parallel(vocab, func(from, to int) {
		weights := make([]float64, cols)
		for n := from; n < to; n++ {
			weightRow(weights, x.W, 0, n)
			for i, row := range in {
				s.store(x.Out, op.F32, i*vocab+n, []float64{dot(row, weights)})
			}
		}
	})
}
