package nn

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Ops is what decoders ask of a kernel set.
type Ops interface {
	op.Core
	op.Attention
	op.MoE
	op.Recurrent
	op.Fused
}

// Builder is what the parts of a decoder are made from.
type Builder struct {
	ops    Ops
	src    model.Source
	config *Config
	limits model.Limits
	rope   *Rope // of all attention blocks

	shared op.Ptr // activations of bodies
	room   op.Ptr // bytes of them
}

// NewBuilder begins a decoder: parts call the kernels of ops, src gives weights and buffers, and limits say what buffers are made for.
func NewBuilder(ops Ops, src model.Source, c *Config, limits model.Limits) *Builder {
	return &Builder{ops: ops, src: src, config: c, limits: limits, rope: NewRope(src, &c.Rotary, limits)}
}

// Decoder is a list of blocks between an embedding and an output matrix. For each block h += after(body(before(h))); the logits are
// head·norm(h).
type Decoder struct {
	ops       Ops
	config    *Config
	embedding op.Weight
	head      op.Weight
	norm      Norm // after the last block
	rope      *Rope
	blocks    []Block
	memory    []model.Memory
	drafts    int32    // most of one sequence in a step
	start     Residual // of every step
}

// Decoder places the weights of a decoder. blocks makes the blocks of each layer, whose tensors have names that begin with prefix
// ("model.layers.0.").
func (b *Builder) Decoder(blocks func(layer int32, prefix string) []Block) *Decoder {
	c := b.config
	d := &Decoder{
		ops:       b.ops,
		config:    c,
		embedding: b.src.Matrix(c.Hidden, model.Part{Name: embeddingName, Rows: c.Vocab}),
		norm:      b.NewNorm("model.norm.weight"),
		rope:      b.rope,
		drafts:    b.limits.Drafts,
	}
	for i := range c.Layers {
		d.blocks = append(d.blocks, blocks(i, fmt.Sprintf("model.layers.%d.", i))...)
	}
	for _, block := range d.blocks {
		if m, ok := block.Body.(Mixer); ok {
			d.memory = append(d.memory, m.Keep(len(d.memory)))
		}
	}
	d.head = d.embedding
	if !c.Tied {
		d.head = b.src.Matrix(c.Hidden, model.Part{Name: c.headName(), Rows: c.Vocab})
	}
	d.start = Residual{ops: b.ops, act: b.limits.Activations, stream: b.hiddenRows(), sum: b.hiddenRows(), x: b.hiddenRows(), normed: b.hiddenRows()}
	b.placeBlocks(d.blocks)
	return d
}

// hiddenRows takes memory for act [Rows,Hidden].
func (b *Builder) hiddenRows() op.Ptr {
	return b.src.Buffer(int64(b.limits.Rows) * int64(b.config.Hidden) * b.limits.Activations.Bytes())
}

// embeddingName is the tensor that tokens are looked up in.
const embeddingName = "model.embed_tokens.weight"

// headName is the tensor of the output matrix.
func (c *Config) headName() string {
	if c.Tied {
		return embeddingName
	}
	return "lm_head.weight"
}

// PreNorm is the two blocks of a layer by the names that most checkpoints have: a mixer, and then a feed-forward network.
func (b *Builder) PreNorm(prefix string, mixer Mixer, feed Body) []Block {
	return []Block{
		{Before: b.NewNorm(prefix + "input_layernorm.weight"), Body: mixer},
		{Before: b.NewNorm(prefix + "post_attention_layernorm.weight"), Body: feed},
	}
}

// Hidden is where the rows of the last step lie behind the last norm, act [Rows,columns], until the next one.
func (d *Decoder) Hidden() (rows op.Ptr, columns int32) { return d.start.normed, d.config.Hidden }

// Layout implements model.Model.
func (d *Decoder) Layout() model.Layout {
	return model.Layout{Memory: d.memory, Vocab: d.config.Vocab, MaxContext: d.config.MaxPositions, Drafts: d.drafts}
}

// Forward implements model.Model.
func (d *Decoder) Forward(q op.Stream, in *model.Inputs) {
	h := d.start // a copy, since fused kernels swap two of its buffers and every step starts alike
	h.q, h.rows = q, in.Rows
	d.ops.Embedding(q, op.Embedding{Out: h.stream, IDs: in.Tokens, W: d.embedding, Rows: in.Rows})
	d.rope.Forward(d.ops, q, in)
	rows := h.run(d.blocks, d.norm, in)
	if in.Outputs > 0 {
		d.ops.Logits(q, op.Logits{Out: in.Logits, In: rows, Index: in.Index, W: d.head, Rows: in.Outputs, InRows: in.Rows})
	}
}
