package nn

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// DeltaNet is the gated delta rule between a short convolution and a gated norm. In place of keys and values it keeps a state of one size for
// each sequence. Source: Yang et al. 2024, https://arxiv.org/abs/2412.06464.
type DeltaNet struct {
	ops     Ops
	act     op.DType
	config  *DeltaNetConfig
	drafts  int32
	in, out Linear
	filter  op.Ptr // f32 [channels,Width]
	decay   op.Ptr // f32 [ValueHeads]
	bias    op.Ptr // f32 [ValueHeads]
	scale   op.Ptr // f32 [ValueDim]
	eps     float32

	number    int    // in Inputs.Memory
	row       op.Ptr // act [Rows,in.rows]: queries, keys and values, then z, then b and a of each value head
	convolved op.Ptr // act [Rows,channels]: queries, keys and values behind the convolution
	mixed     op.Ptr // act [Rows,ValueHeads·ValueDim]: what the rule gives
	normed    op.Ptr // act [Rows,ValueHeads·ValueDim]
}

// unitEps is added to the squares of queries and keys before they are divided by their length.
const unitEps = 1e-6

// NewDeltaNet loads the delta net of one layer; prefix is "model.layers.0.linear_attn.". Its projections are stored by what they give, or in
// two tensors whose rows are those of one key head and of its values after the other.
func (b *Builder) NewDeltaNet(c *DeltaNetConfig, prefix string) *DeltaNet {
	parts := c.flat(prefix)
	if c.Grouped && b.src.Has(prefix+groupedName+".weight") {
		parts = c.grouped(prefix)
	}
	d := &DeltaNet{
		ops:    b.ops,
		act:    b.limits.Activations,
		config: c,
		drafts: b.limits.Drafts,
		in:     NewLinear(b.src, b.config.Hidden, false, parts...),
		out:    NewLinear(b.src, c.ValueHeads*c.ValueDim, false, model.Part{Name: prefix + "out_proj", Rows: b.config.Hidden}),
		filter: b.src.Floats(b.src.Values(prefix+"conv1d.weight", c.channels(), 1, c.Width)),
		bias:   b.src.Vector(model.Part{Name: prefix + "dt_bias", Rows: c.ValueHeads}),
		scale:  b.src.Vector(model.Part{Name: prefix + "norm.weight", Rows: c.ValueDim}),
		eps:    b.config.Eps,
	}
	if !b.src.Has(prefix+"A_log") && b.src.Has(prefix+"A") { // as GGUF files have it
		d.decay = b.src.Vector(model.Part{Name: prefix + "A", Rows: c.ValueHeads})
		return d
	}
	decay := b.src.Values(prefix+"A_log", c.ValueHeads)
	for h, log := range decay {
		decay[h] = -float32(math.Exp(float64(log)))
	}
	d.decay = b.src.Floats(decay)
	return d
}

// flat is the parts of a row as Qwen3.5 stores them.
func (c *DeltaNetConfig) flat(prefix string) []model.Part {
	return []model.Part{
		{Name: prefix + "in_proj_qkv", Rows: c.channels()},
		{Name: prefix + "in_proj_z", Rows: c.ValueHeads * c.ValueDim},
		{Name: prefix + "in_proj_b", Rows: c.ValueHeads},
		{Name: prefix + "in_proj_a", Rows: c.ValueHeads},
	}
}

// groupedName is the tensor of queries, keys, values and z as Qwen3-Next stores them.
const groupedName = "in_proj_qkvz"

// grouped is the parts of a row as Qwen3-Next stores them: a query, a key, its values and their z, and so on; b of a key's values, then a.
func (c *DeltaNetConfig) grouped(prefix string) []model.Part {
	each := c.ValueHeads / c.KeyHeads // value heads of a key head
	values := each * c.ValueDim
	part := func(name string, first, rows, every int32) model.Part {
		return model.Part{Name: prefix + name, Rows: rows * c.KeyHeads, From: model.Pattern{First: first, Each: rows, Every: every}}
	}
	group := 2*c.KeyDim + 2*values
	return []model.Part{
		part(groupedName, 0, c.KeyDim, group),
		part(groupedName, c.KeyDim, c.KeyDim, group),
		part(groupedName, 2*c.KeyDim, values, group),
		part(groupedName, 2*c.KeyDim+values, values, group),
		part("in_proj_ba", 0, each, 2*each),
		part("in_proj_ba", each, each, 2*each),
	}
}

// Keep implements Mixer. What it keeps is the window of the convolution, the state, and where there are drafts their journal.
func (d *DeltaNet) Keep(number int) model.Memory {
	d.number = number
	c, drafts := d.config, int64(d.drafts)
	keys, values := int64(c.KeyHeads)*int64(c.KeyDim), int64(c.ValueHeads)
	arrays := []model.Array{
		{Elements: (int64(c.Width) + drafts) * int64(c.channels()), Type: d.act},
		{Elements: values * int64(c.ValueDim) * int64(c.KeyDim), Type: op.F32},
	}
	if drafts > 0 {
		arrays = append(arrays, model.Array{Elements: (2*drafts + 1) * (keys + values*int64(c.ValueDim+1)), Type: op.F32})
	}
	return model.Memory{Kind: model.PerSequence, Arrays: arrays}
}

// Place implements Body.
func (d *DeltaNet) Place(r *Room) {
	values := d.config.ValueHeads * d.config.ValueDim
	d.row = r.Act(d.in.rows)
	d.convolved = r.Act(d.config.channels())
	d.mixed = r.Act(values)
	d.normed = r.Act(values)
}

// Forward implements Body. In this order: the projections, the convolution, the rule and the gated norm, in one launch where the kernel set
// has one, and the output projection.
func (d *DeltaNet) Forward(q op.Stream, in *model.Inputs, h *Residual) {
	h.Project(d.in, d.row)
	model.BeginLive(q)
	d.mix(q, in)
	model.EndLive(q)
	h.Add(d.out, d.normed)
}

// mix leaves in d.normed what the projections in d.row give.
func (d *DeltaNet) mix(q op.Stream, in *model.Inputs) {
	c, memory := d.config, in.Memory[d.number]
	window, state, journal := memory[0], memory[1], op.Ptr(0)
	if d.drafts > 0 {
		journal = memory[2]
	}
	if d.ops.DeltaNet(q, op.DeltaNet{
		Out: d.normed, In: d.row, Filter: d.filter, Decay: d.decay, Bias: d.bias, Scale: d.scale, Window: window, State: state, Journal: journal,
		Starts: in.Starts, Lengths: in.Lengths, Slot: in.States, Drafts: in.Drafts, Accepted: in.Accepted,
		Rows: in.Rows, Seqs: in.Seqs, Slots: in.StateSlots, MaxDrafts: d.drafts, KeyHeads: c.KeyHeads, ValueHeads: c.ValueHeads,
		KeyDim: c.KeyDim, ValueDim: c.ValueDim, Width: c.Width, Tiled: flag(c.Tiled), Gate: c.gate, Eps: unitEps, NormEps: d.eps,
	}) {
		return
	}
	z := d.row + op.Ptr(int64(c.channels())*d.act.Bytes())
	gates := z + op.Ptr(int64(c.ValueHeads)*int64(c.ValueDim)*d.act.Bytes())
	d.ops.CausalConv(q, op.CausalConv{
		Out: d.convolved, In: d.row, Filter: d.filter, State: window, Starts: in.Starts, Lengths: in.Lengths, Slot: in.States,
		Rows: in.Rows, Seqs: in.Seqs, Slots: in.StateSlots, MaxDrafts: d.drafts, Channels: c.channels(), Width: c.Width, InPitch: d.in.rows,
	})
	d.ops.DeltaRule(q, op.DeltaRule{
		Out: d.mixed, QKV: d.convolved, Gates: gates, Decay: d.decay, Bias: d.bias, State: state, Journal: journal,
		Starts: in.Starts, Lengths: in.Lengths, Slot: in.States, Drafts: in.Drafts, Accepted: in.Accepted,
		Rows: in.Rows, Seqs: in.Seqs, Slots: in.StateSlots, MaxDrafts: d.drafts, KeyHeads: c.KeyHeads, ValueHeads: c.ValueHeads,
		KeyDim: c.KeyDim, ValueDim: c.ValueDim, GatesPitch: d.in.rows, Tiled: flag(c.Tiled), Eps: unitEps,
	})
	d.ops.GatedNorm(q, op.GatedNorm{
		Out: d.normed, In: d.mixed, Z: z, Scale: d.scale, Rows: in.Rows, Heads: c.ValueHeads, HeadDim: c.ValueDim, ZPitch: d.in.rows,
		Gate: c.gate, Eps: d.eps,
	})
}
