package oracle

import (
	"math"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// run is the rows of one sequence in a step of recurrent layers.
type run struct {
	slot        int // where its state lies
	first, rows int // rows of the step
	position    int // of the first
	drafts      int // of rows: the last ones
	accepted    int // rows of the journal that lead to its state
}

// runs are the sequences of a step that have a slot and rows.
func runs(seqs int32, starts, lengths, slot, drafts, accepted op.Ptr) []run {
	first, length, slots := slice[int32](starts, int(seqs)+1), slice[int32](lengths, int(seqs)), slice[int32](slot, int(seqs))
	var list []run
	for s := range int(seqs) {
		r := run{slot: int(slots[s]), first: int(first[s]), rows: int(first[s+1] - first[s])}
		if r.slot < 0 || r.rows == 0 {
			continue
		}
		r.position = int(length[s]) - r.rows
		if drafts != 0 {
			r.drafts = int(slice[int32](drafts, int(seqs))[s])
		}
		if accepted != 0 && r.position > 0 {
			r.accepted = int(slice[int32](accepted, int(seqs))[s])
		}
		list = append(list, r)
	}
	return list
}

// CausalConv convolves channels over time.
func (s *Set) CausalConv(_ op.Stream, x op.CausalConv) {
	channels, width := int(x.Channels), int(x.Width)
	filter, bias := load(x.Filter, op.F32, 0, channels*width), make([]float64, channels)
	if x.Bias != 0 {
		bias = load(x.Bias, op.F32, 0, channels)
	}
	ring := width + int(x.MaxDrafts)
	for _, r := range runs(x.Seqs, x.Starts, x.Lengths, x.Slot, 0, 0) {
		at := func(position int) int { return (r.slot*ring + position%ring) * channels }
		var inputs [][]float64 // by position, from that of the oldest on that the first row sees
		for position := r.position - width + 1; position < r.position; position++ {
			if position < 0 {
				inputs = append(inputs, make([]float64, channels))
			} else {
				inputs = append(inputs, load(x.State, s.act, at(position), channels))
			}
		}
		for i := range r.rows {
			inputs = append(inputs, load(x.In, s.act, (r.first+i)*int(x.InPitch), channels))
			out := slices.Clone(bias)
			for c := range out {
				for j := range width {
					out[c] += filter[c*width+j] * inputs[i+j][c]
				}
				out[c] = silu(out[c])
			}
			s.store(x.Out, s.act, (r.first+i)*channels, out)
		}
		for i := max(0, r.rows-ring); i < r.rows; i++ {
			s.store(x.State, s.act, at(r.position+i), inputs[width-1+i])
		}
	}
}

// DeltaRule runs the gated delta rule row after row. What it hands from row to row is rounded to f32, as the state and the journal hold it: so a
// row's bits do not depend on how a sequence is cut into steps.
func (s *Set) DeltaRule(_ op.Stream, x op.DeltaRule) {
	keys, values, keyDim, valueDim := int(x.KeyHeads), int(x.ValueHeads), int(x.KeyDim), int(x.ValueDim)
	decay, bias := load(x.Decay, op.F32, 0, values), load(x.Bias, op.F32, 0, values)
	pitch, entry := 2*keys*keyDim+values*valueDim, keys*keyDim+values*(valueDim+1)
	list := runs(x.Seqs, x.Starts, x.Lengths, x.Slot, x.Drafts, x.Accepted)
	parallel(len(list)*values, func(from, to int) {
		for task := from; task < to; task++ {
			r, h := list[task/values], task%values
			key := h / (values / keys)
			if x.Tiled != 0 {
				key = h % keys
			}
			at := (r.slot*values + h) * valueDim * keyDim
			state := make([]float64, valueDim*keyDim)
			if r.position > 0 {
				state = load(x.State, op.F32, at, valueDim*keyDim)
			}
			ring := 2*int(x.MaxDrafts) + 1
			journal := func(position int) (k, delta, alpha int) {
				begin := (r.slot*ring + position%ring) * entry
				return begin + key*keyDim, begin + keys*keyDim + h*valueDim, begin + keys*keyDim + values*valueDim + h
			}
			for i := range r.accepted {
				k, delta, alpha := journal(r.position - r.accepted + i)
				advance(state, load(x.Journal, op.F32, k, keyDim), load(x.Journal, op.F32, delta, valueDim), load(x.Journal, op.F32, alpha, 1)[0])
			}
			for i := range r.rows {
				row := (r.first + i) * pitch
				q, k := load(x.QKV, s.act, row+key*keyDim, keyDim), load(x.QKV, s.act, row+(keys+key)*keyDim, keyDim)
				v := load(x.QKV, s.act, row+2*keys*keyDim+h*valueDim, valueDim)
				unit(q, float64(x.Eps), 1/math.Sqrt(float64(keyDim)))
				unit(k, float64(x.Eps), 1)
				gates := (r.first + i) * int(x.GatesPitch)
				b, a := load(x.Gates, s.act, gates+h, 1)[0], load(x.Gates, s.act, gates+values+h, 1)[0]
				beta, alpha := 1/(1+math.Exp(-b)), float64(float32(math.Exp(decay[h]*softplus(a+bias[h]))))
				toF32(k)
				delta := make([]float64, valueDim)
				for n := range delta {
					delta[n] = beta * (v[n] - alpha*dot(state[n*keyDim:(n+1)*keyDim], k))
				}
				toF32(delta)
				if i == r.rows-r.drafts {
					s.store(x.State, op.F32, at, state)
				}
				if i >= r.rows-r.drafts {
					keyAt, deltaAt, alphaAt := journal(r.position + i)
					if x.Tiled == 0 && h%(values/keys) == 0 || x.Tiled != 0 && h < keys { // one of the heads that share the key stores it
						s.store(x.Journal, op.F32, keyAt, k)
					}
					s.store(x.Journal, op.F32, deltaAt, delta)
					s.store(x.Journal, op.F32, alphaAt, []float64{alpha})
				}
				advance(state, k, delta, alpha)
				out := make([]float64, valueDim)
				for n := range out {
					out[n] = dot(state[n*keyDim:(n+1)*keyDim], q)
				}
				s.store(x.Out, s.act, ((r.first+i)*values+h)*valueDim, out)
			}
			if r.drafts == 0 {
				s.store(x.State, op.F32, at, state)
			}
		}
	})
}

// advance makes the state after a row of the one before it: S ← α·S + δ⊗k.
func advance(state, k, delta []float64, alpha float64) {
	for n, d := range delta {
		for i, x := range k {
			state[n*len(k)+i] = alpha*state[n*len(k)+i] + d*x
		}
	}
	toF32(state)
}

// toF32 rounds numbers to f32.
func toF32(x []float64) {
	for i, v := range x {
		x[i] = float64(float32(v))
	}
}

// unit divides x by √(Σx² + eps) and multiplies it by a factor.
func unit(x []float64, eps, factor float64) {
	factor /= math.Sqrt(dot(x, x) + eps)
	for i := range x {
		x[i] *= factor
	}
}

// softplus is ln(1+eˣ).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// GatedNorm normalises and gates heads.
func (s *Set) GatedNorm(_ op.Stream, x op.GatedNorm) {
	heads, dim := int(x.Heads), int(x.HeadDim)
	scale := load(x.Scale, op.F32, 0, dim)
	for r := range int(x.Rows) {
		for h := range heads {
			out, z := load(x.In, s.act, (r*heads+h)*dim, dim), load(x.Z, s.act, r*int(x.ZPitch)+h*dim, dim)
			inverse := 1 / math.Sqrt(dot(out, out)/float64(dim)+float64(x.Eps))
			for i := range out {
				gate := 1 / (1 + math.Exp(-z[i]))
				if x.Gate == op.GateSilu {
					gate *= z[i]
				}
				out[i] *= inverse * scale[i] * gate
			}
			s.store(x.Out, s.act, (r*heads+h)*dim, out)
		}
	}
}

// SigmoidGate gates the output of attention.
func (s *Set) SigmoidGate(_ op.Stream, x op.SigmoidGate) {
	cols := int(x.Cols)
	for r := range int(x.Rows) {
		out, gate := load(x.In, s.act, r*cols, cols), load(x.Gate, s.act, r*int(x.GatePitch), cols)
		for c := range out {
			out[c] /= 1 + math.Exp(-gate[c])
		}
		s.store(x.Out, s.act, r*cols, out)
	}
}

// GatedAdd adds gated rows.
func (s *Set) GatedAdd(_ op.Stream, x op.GatedAdd) {
	cols := int(x.Cols)
	gate := load(x.Gate, s.act, 0, int(x.Rows))
	for r, g := range gate {
		out, in := load(x.Out, s.act, r*cols, cols), load(x.In, s.act, r*cols, cols)
		for c := range out {
			out[c] += in[c] / (1 + math.Exp(-g))
		}
		s.store(x.Out, s.act, r*cols, out)
	}
}
