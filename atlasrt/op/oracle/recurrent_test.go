package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// one is a sequence of a step: all rows of the slot 0.
type one struct{ starts, lengths, slot, drafts, accepted op.Ptr }

func oneSequence(pin *runtime.Pinner, rows, position, drafts, accepted int) one {
	return one{
		Address(pin, []int32{0, int32(rows)}), Address(pin, []int32{int32(position + rows)}), Address(pin, []int32{0}),
		Address(pin, []int32{int32(drafts)}), Address(pin, []int32{int32(accepted)}),
	}
}

// floats are normally distributed numbers that f32 holds.
func floats(rng *rand.Rand, n int, deviation float64) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(deviation * rng.NormFloat64())
	}
	return values
}

// ruled is the rows of one head, in the terms of the delta rule: queries and keys of length one, the rates β, and logarithms g of the decays α.
type ruled struct {
	q, k, v [][]float64
	beta, g []float64
}

// matrixForm computes rows from a state of rows of values and columns of keys in chunks, by products of matrices: with G the running sum of g,
// M[i,j] = β_i·e^(G_i-G_j)·k_i·k_j below the diagonal, and T = (I+M)⁻¹, the corrections are D = T·(diag(β)·V - diag(β·e^G)·K·Sᵀ), so that
// Out_i = e^(G_i)·S·q_i + Σ_{j≤i} e^(G_i-G_j)·(q_i·k_j)·D_j, and S becomes e^(G_last)·S + Σ_j e^(G_last-G_j)·D_j⊗k_j.
func matrixForm(x ruled, state [][]float64, chunk int) (out [][]float64) {
	for first := 0; first < len(x.k); first += chunk {
		n := min(chunk, len(x.k)-first)
		at := func(i int) int { return first + i }
		sum := make([]float64, n)
		for i := range n {
			sum[i] = x.g[at(i)]
			if i > 0 {
				sum[i] += sum[i-1]
			}
		}
		corrections := make([][]float64, n)
		for i := range n { // forward substitution
			k, beta := x.k[at(i)], x.beta[at(i)]
			corrections[i] = make([]float64, len(state))
			for c := range state {
				corrections[i][c] = beta * (x.v[at(i)][c] - math.Exp(sum[i])*dot(state[c], k))
				for j := range i {
					corrections[i][c] -= beta * math.Exp(sum[i]-sum[j]) * dot(k, x.k[at(j)]) * corrections[j][c]
				}
			}
		}
		for i := range n {
			row := make([]float64, len(state))
			for c := range state {
				row[c] = math.Exp(sum[i]) * dot(state[c], x.q[at(i)])
				for j := range i + 1 {
					row[c] += math.Exp(sum[i]-sum[j]) * dot(x.q[at(i)], x.k[at(j)]) * corrections[j][c]
				}
			}
			out = append(out, row)
		}
		for c := range state {
			for e := range state[c] {
				state[c][e] *= math.Exp(sum[n-1])
				for j := range n {
					state[c][e] += math.Exp(sum[n-1]-sum[j]) * corrections[j][c] * x.k[at(j)][e]
				}
			}
		}
	}
	return out
}

// The delta rule gives what its form in matrices gives, for each pairing of heads. The reference keeps states in f32, which is what is left of the
// difference.
func TestDeltaRuleEqualsItsMatrixForm(t *testing.T) {
	const rows, keys, values, keyDim, valueDim, eps = 150, 2, 4, 24, 20, 1e-6
	for tiled := range int32(2) {
		var pin runtime.Pinner
		rng := rand.New(rand.NewPCG(1, uint64(tiled)))
		pitch := 2*keys*keyDim + values*valueDim
		qkv, gates, state := floats(rng, rows*pitch, 1), floats(rng, rows*2*values, 1), floats(rng, values*valueDim*keyDim, 0.3)
		decay, bias := []float32{-0.05, -1, -4, -16}, []float32{-3, -4, -5, 0.5}
		out, step := make([]float32, rows*values*valueDim), oneSequence(&pin, rows, 7, 0, 0)
		heads := make([][][]float64, values) // states as the matrix form has them
		for h := range heads {
			for c := range valueDim {
				heads[h] = append(heads[h], widened(state[(h*valueDim+c)*keyDim:][:keyDim]))
			}
		}
		New(op.F32).DeltaRule(nil, op.DeltaRule{
			Out: Address(&pin, out), QKV: Address(&pin, qkv), Gates: Address(&pin, gates), Decay: Address(&pin, decay), Bias: Address(&pin, bias), State: Address(&pin, state),
			Starts: step.starts, Lengths: step.lengths, Slot: step.slot, Rows: rows, Seqs: 1, Slots: 1,
			KeyHeads: keys, ValueHeads: values, KeyDim: keyDim, ValueDim: valueDim, GatesPitch: 2 * values, Tiled: tiled, Eps: eps,
		})
		for h := range values {
			key := h / (values / keys)
			if tiled == 1 {
				key = h % keys
			}
			var x ruled
			for r := range rows {
				row := widened(qkv[r*pitch : (r+1)*pitch])
				q, k := row[key*keyDim:][:keyDim], row[(keys+key)*keyDim:][:keyDim]
				length, lengthK := math.Sqrt(dot(q, q)+eps)*math.Sqrt(keyDim), math.Sqrt(dot(k, k)+eps)
				for i := range keyDim {
					q[i], k[i] = q[i]/length, k[i]/lengthK
				}
				b, a := float64(gates[r*2*values+h]), float64(gates[r*2*values+values+h])
				x.q, x.k, x.v = append(x.q, q), append(x.k, k), append(x.v, row[2*keys*keyDim+h*valueDim:][:valueDim])
				x.beta, x.g = append(x.beta, 1/(1+math.Exp(-b))), append(x.g, float64(decay[h])*math.Log(1+math.Exp(a+float64(bias[h]))))
			}
			for r, want := range matrixForm(x, heads[h], 64) {
				alike(t, fmt.Sprintf("tiled %d head %d row %d", tiled, h, r), out[(r*values+h)*valueDim:][:valueDim], want, 0.2)
			}
			for c, want := range heads[h] {
				alike(t, fmt.Sprintf("tiled %d head %d state %d", tiled, h, c), state[(h*valueDim+c)*keyDim:][:keyDim], want, 0.2)
			}
		}
		pin.Unpin()
	}
}

// widened is a copy in float64.
func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// alike wants numbers that differ by no more than states in f32 lose, for numbers of about a size.
func alike(t *testing.T, name string, got []float32, want []float64, size float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) < 1e-6*max(size, math.Abs(want[i]))) {
			t.Fatalf("%s: element %d is %.9g, want %.9g", name, i, got[i], want[i])
		}
	}
}

// A convolution is a sum over the inputs before a row, whether they come in the same step or lie in the ring.
func TestCausalConvSeesEarlierSteps(t *testing.T) {
	const channels, width, drafts, rows = 3, 4, 2, 20
	rng := rand.New(rand.NewPCG(2, 3))
	in, filter, bias := floats(rng, rows*channels, 1), floats(rng, channels*width, 1), floats(rng, channels, 1)
	ring := floats(rng, (width+drafts)*channels, 1)
	var pin runtime.Pinner
	defer pin.Unpin()
	at := 0
	for _, n := range []int{1, 2, 9, 1, 1, 6} {
		out, step := make([]float32, n*channels), oneSequence(&pin, n, at, 0, 0)
		New(op.F32).CausalConv(nil, op.CausalConv{
			Out: Address(&pin, out), In: Address(&pin, in[at*channels:]), Filter: Address(&pin, filter), Bias: Address(&pin, bias), State: Address(&pin, ring),
			Starts: step.starts, Lengths: step.lengths, Slot: step.slot, Rows: int32(n), Seqs: 1, Slots: 1, MaxDrafts: drafts, Channels: channels, Width: width, InPitch: channels,
		})
		for i := range n {
			for c := range channels {
				sum := float64(bias[c])
				for j := range width {
					if from := at + i - width + 1 + j; from >= 0 {
						sum += float64(filter[c*width+j]) * float64(in[from*channels+c])
					}
				}
				alike(t, fmt.Sprintf("row %d channel %d", at+i, c), out[i*channels+c:][:1], []float64{sum / (1 + math.Exp(-sum))}, 1)
			}
		}
		at += n
	}
}

// A norm and a gate, by hand: the root mean square of 3 and 4 is √12.5.
func TestGatedNormAndGates(t *testing.T) {
	var pin runtime.Pinner
	defer pin.Unpin()
	in, z, scale, out := []float32{3, 4}, []float32{0, 2}, []float32{1, 2}, make([]float32, 2)
	x := op.GatedNorm{Out: Address(&pin, out), In: Address(&pin, in), Z: Address(&pin, z), Scale: Address(&pin, scale), Rows: 1, Heads: 1, HeadDim: 2, ZPitch: 2}
	s := New(op.F32)
	s.GatedNorm(nil, x)
	alike(t, "silu", out, []float64{0, 8 / math.Sqrt(12.5) * 2 / (1 + math.Exp(-2))}, 1)
	x.Gate = op.GateSigmoid
	s.GatedNorm(nil, x)
	alike(t, "sigmoid", out, []float64{1.5 / math.Sqrt(12.5), 8 / math.Sqrt(12.5) / (1 + math.Exp(-2))}, 1)
	s.SigmoidGate(nil, op.SigmoidGate{Out: x.Out, In: x.In, Gate: x.Z, Rows: 1, Cols: 2, GatePitch: 2})
	alike(t, "gate of attention", out, []float64{1.5, 4 / (1 + math.Exp(-2))}, 1)
	s.GatedAdd(nil, op.GatedAdd{Out: x.Out, In: x.In, Gate: x.Z, Rows: 1, Cols: 2})
	alike(t, "shared expert", out, []float64{3, 4/(1+math.Exp(-2)) + 2}, 1)
}

// A shared expert is every row's last pick, whatever the others' logits are.
func TestRouteShared(t *testing.T) {
	var pin runtime.Pinner
	defer pin.Unpin()
	const experts, top = 5, 3
	logits := []float32{0, 1, 2, -1, 9, 3, 0, 0, 1, -2}
	ids, weights, order, starts := make([]int32, 2*top), make([]float32, 2*top), make([]int32, 2*top), make([]int32, experts+1)
	New(op.F32).Route(nil, op.Route{
		IDs: Address(&pin, ids), Weights: Address(&pin, weights), Order: Address(&pin, order), Starts: Address(&pin, starts), Logits: Address(&pin, logits),
		Rows: 2, Experts: experts, TopK: top, Shared: 1, Normalise: 1, Scale: 2,
	})
	if got, want := fmt.Sprint(ids, order, starts), fmt.Sprint([]int32{2, 1, 4, 0, 3, 4}, []int32{3, 1, 0, 4, 2, 5}, []int32{0, 1, 2, 3, 4, 6}); got != want {
		t.Errorf("picks and their order: %s, want %s", got, want)
	}
	share := func(x, other float64) float64 { return 2 / (1 + math.Exp(other-x)) }
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	alike(t, "weights", weights, []float64{share(2, 1), share(1, 2), sigmoid(9), share(3, 1), share(1, 3), sigmoid(-2)}, 1)
}
