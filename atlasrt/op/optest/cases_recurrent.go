package optest

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// state is the shape of a delta rule: heads of keys and of values, and the elements of each.
type state struct {
	keys, values, keyDim, valueDim int
	tiled                          bool
}

func (s state) String() string {
	return fmt.Sprintf("%d/%d×%d×%d%s", s.keys, s.values, s.valueDim, s.keyDim, word(s.tiled, " tiled"))
}

// channels is how many channels are convolved.
func (s state) channels() int { return 2*s.keys*s.keyDim + s.values*s.valueDim }

func (s state) rule(drafts int) op.DeltaRule {
	x := op.DeltaRule{KeyHeads: int32(s.keys), ValueHeads: int32(s.values), KeyDim: int32(s.keyDim), ValueDim: int32(s.valueDim), MaxDrafts: int32(drafts), Eps: 1e-6}
	if s.tiled {
		x.Tiled = 1
	}
	return x
}

func (s state) net(drafts int, gate op.Gate) op.DeltaNet {
	x := s.rule(drafts)
	return op.DeltaNet{
		KeyHeads: x.KeyHeads, ValueHeads: x.ValueHeads, KeyDim: x.KeyDim, ValueDim: x.ValueDim, Tiled: x.Tiled, MaxDrafts: x.MaxDrafts, Width: 4, Gate: gate, Eps: x.Eps, NormEps: 1e-5,
	}
}

// smallStates are shapes for every batch: of the goldens, of neither, and of published widths. largeStates have the heads of published models.
var (
	smallStates = []state{{2, 4, 32, 32, false}, {3, 6, 24, 40, true}, {1, 1, 17, 9, false}, {2, 6, 64, 64, false}, {2, 4, 128, 128, true}, {1, 2, 256, 16, false}}
	largeStates = []state{{16, 32, 128, 128, false}, {16, 48, 128, 128, true}, {16, 64, 128, 128, false}}
)

// ragged is a batch of sequences.
type ragged struct {
	name    string
	batch   []stretch
	padding int
	drafts  int // MaxDrafts
}

// raggedBatches are batches of recurrent layers: prompts and their chunks, decodes, rows with drafts after drafts, and sequences that bring nothing.
func raggedBatches(o Options) []ragged {
	var drafted []stretch
	for drafts := range 4 {
		for accepted := range 4 {
			drafted = append(drafted, stretch{rows: 1 + drafts, position: 4 + 3*drafts + 5*accepted, drafts: drafts, accepted: accepted})
		}
	}
	list := []ragged{
		{"one row", []stretch{{rows: 1, position: 70}}, 0, 0},
		{"first row", []stretch{{rows: 1}}, 0, 3},
		{"decodes", []stretch{{rows: 1, position: 1}, {rows: 1, position: 2}, {rows: 1, position: 300}, {rows: 1, padding: true}, {rows: 1, position: 63}, {rows: 1}}, 2, 0},
		{"chunks", []stretch{{rows: 2}, {rows: 63}, {rows: 3, position: 5}, {rows: 64, position: 1}, {rows: 1}, {rows: 65, position: 100}, {rows: 3}}, 3, 0},
		{"nothing", []stretch{{position: 5}, {rows: 2, padding: true}, {position: 0}}, 1, 0},
		{"three rows of one sequence, none of others", []stretch{{position: 5}, {rows: 3, position: 30}, {position: 0}}, 0, 0},
		{"after drafts", drafted, 0, 3},
		{"at most one draft", []stretch{
			{rows: 2, position: 9, drafts: 1, accepted: 1}, {rows: 1, position: 4, accepted: 1}, {rows: 2, position: 3, drafts: 1}, {position: 8, accepted: 1},
			{rows: 2, padding: true}, {rows: 2, drafts: 1}, {rows: 70, position: 20, accepted: 1},
		}, 2, 1},
		{"prompts that end in drafts", []stretch{{rows: 70, drafts: 3}, {rows: 1, position: 40}, {rows: 5, drafts: 2}, {rows: 66, position: 64, accepted: 3}}, 0, 3},
	}
	if !o.Short {
		list = append(list, ragged{"prompts of 200", []stretch{{rows: 200}, {rows: 200, position: 3}}, 0, 2})
	}
	return list
}

func recurrentCases(o Options) []*Case {
	list := convCases(o)
	shapes := smallStates
	if o.Short {
		shapes = shapes[:3]
	}
	for i, s := range shapes {
		for k, r := range raggedBatches(o) {
			name := fmt.Sprintf("%s %s", s, r.name)
			x := s.rule(r.drafts)
			x.GatesPitch = int32((2*s.values + 3) * ((i + k) % 2))
			list = append(list, delta(name, x, r.batch, r.padding), deltaNet(name, s.net(r.drafts, op.Gate((i+k)%2)), r.batch, r.padding))
		}
	}
	if o.Short {
		return list
	}
	for _, s := range largeStates {
		for _, r := range []ragged{
			{"one row", []stretch{{rows: 1, position: 70}}, 0, 0},
			{"decodes and drafts", []stretch{{rows: 1, position: 30}, {rows: 4, position: 9, drafts: 3, accepted: 2}}, 1, 3},
			{"a chunk", []stretch{{rows: 80, position: 64}}, 0, 0},
		} {
			name := fmt.Sprintf("%s %s", s, r.name)
			list = append(list, delta(name, s.rule(r.drafts), r.batch, r.padding), deltaNet(name, s.net(r.drafts, op.GateSilu), r.batch, r.padding))
		}
	}
	many := make([]stretch, 40)
	for i := range many {
		many[i] = stretch{rows: 1, position: i * 3, padding: i == 7}
	}
	s := state{2, 4, 128, 128, false}
	list = append(list, delta(s.String()+" 40 decodes", s.rule(0), many, 0), deltaNet(s.String()+" 40 decodes", s.net(0, op.GateSilu), many, 0))
	for i, s := range append([]state{{2, 4, 128, 128, false}, {2, 6, 128, 128, true}, {3, 3, 128, 128, false}}, largeStates...) {
		batch := crowd(640/(2*s.keys), i%4)
		list = append(list, deltaNet(fmt.Sprintf("%s %d sequences", s, len(batch)), s.net(i%4, op.Gate(i%2)), batch, i%3))
	}
	return list
}

// crowd is a batch of decodes, with as many drafts as may be in some of them, first rows and sequences that bring nothing. Where there may be drafts, one
// sequence has more rows than its rings.
func crowd(sequences, drafts int) []stretch {
	list := make([]stretch, sequences)
	for i := range list {
		n := i % (drafts + 1)
		list[i] = stretch{rows: 1 + n, position: i * 3, drafts: n, accepted: min(i*3, i/3%(drafts+1)), padding: i%11 == 7}
	}
	list[sequences/2] = stretch{position: 9}
	if drafts > 0 {
		list[sequences/3] = stretch{rows: 6 + drafts, position: 8, drafts: drafts - 1, accepted: 1}
	}
	return list
}

// convCases have more channels than a block has, and fewer than a register.
func convCases(o Options) []*Case {
	var list []*Case
	for i, s := range []struct{ channels, width int }{{24, 4}, {97, 4}, {1, 2}, {520, 4}, {130, 8}, {1000, 1}, {8192, 4}} {
		for k, r := range raggedBatches(o) {
			if s.channels > 1000 && (o.Short || len(r.batch) > 2) {
				continue
			}
			x := op.CausalConv{Channels: int32(s.channels), Width: int32(s.width), MaxDrafts: int32(r.drafts), InPitch: int32(s.channels + 5*((i+k)%2))}
			bias := (i+k)%3 == 0
			name := fmt.Sprintf("%d channels width %d %s%s", s.channels, s.width, r.name, word(bias, " bias"))
			list = append(list, conv(name, x, r.batch, r.padding).with(word(bias, "Bias")))
		}
	}
	return list
}

// gatingCases are gated norms, the gate of attention, and shared experts that are added.
func gatingCases(o Options) []*Case {
	var list []*Case
	for i, s := range []struct{ rows, heads, dim int }{{1, 32, 128}, {5, 4, 32}, {3, 3, 24}, {2, 1, 1}, {17, 8, 64}, {4, 48, 128}, {3, 2, 97}, {70, 4, 128}, {2, 3, 256}, {1100, 2, 32}} {
		for gate := op.GateSilu; gate <= op.GateSigmoid; gate++ {
			if o.Short && s.rows > 100 {
				continue
			}
			x := op.GatedNorm{Rows: int32(s.rows), Heads: int32(s.heads), HeadDim: int32(s.dim), ZPitch: int32(s.heads*s.dim + 7*(i%2)), Gate: gate, Eps: 1e-6}
			list = append(list, of(fmt.Sprintf("rows %d %d×%d gate %d", s.rows, s.heads, s.dim, gate), x))
		}
	}
	for i, s := range []shape{{1, 4096}, {5, 97}, {3, 1}, {33, 2048}, {300, 256}, {2, 40}} {
		cols := int32(s.cols)
		x := op.SigmoidGate{Rows: int32(s.rows), Cols: cols, GatePitch: cols * int32(1+i%2)}
		place := of(s.String()+" in place", x)
		place.alias["In"] = "Out"
		list = append(list, of(s.String(), x), place, of(s.String(), op.GatedAdd{Rows: int32(s.rows), Cols: cols}))
	}
	return list
}
