package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// DraftOps is what heads that draft ask of a kernel set.
type DraftOps interface {
	Ops
	op.Drafting
	Sample(op.Stream, op.Sample)
}

// MTP is a head for multi-token prediction, which drafts. From a hidden state of the model, behind its last norm, and the token behind that
// row it guesses the token after:
//
//	z = join·[norm(embedding(token)), norm(hidden)],  hidden' = norm(blocks(z)),  logits = head·hidden'
//
// Embedding and output matrix are the model's, and the blocks keep keys and values of their own. For a further draft the head reads its own
// hidden state and the token that it has just drafted, one position on. Source: DeepSeek-AI 2024, https://arxiv.org/abs/2412.19437, section 2.2.
//
// In each step all rows go through the head, so that it knows the whole sequence: at position t the key is that of hidden state t and token
// t+1. Rows of drafts that did not count, and those of the passes that draft, leave keys behind that are not true. Nothing reads them: they
// lie behind the last draw that counts, the next step writes its rows there before it reads, and no row sees positions behind its own. Where
// sequences share the blocks of a prefix, the key of the prefix' last row is that of the token which followed it first: a guess may be worse
// for it, and a guess is never more than that.
type MTP struct {
	ops       DraftOps
	decoder   *Decoder // whose hidden states it reads
	embedding op.Weight
	head      op.Weight
	table     op.Ptr // i32 [head.Rows]: the token of each row of head; 0: row n is that of token n
	rope      *Rope

	embeddingNorm, hiddenNorm Norm
	join                      Linear
	blocks                    []Block
	norm                      Norm
	memory                    []model.Memory
	mixers                    int // blocks up to the last that mixes rows

	start  Residual // of every pass
	pair   op.Ptr   // act [Rows,2·Hidden]: what join reads
	logits op.Ptr   // f32 [Chunks,head.Rows]: of the last draft, by rows of head
	zeros  op.Ptr   // for each chunk two words and one more
	count  op.Ptr   // i32 [Chunks]: 0, 1, …

	rows model.Inputs // of the pass at work
	h    Residual     // of the pass at work
}

// MTPNames names the tensors of a head beside those of its blocks.
type MTPNames struct {
	EmbeddingNorm, HiddenNorm string // scales of the norms of what it reads
	Join                      string // the matrix [Hidden,2·Hidden] that joins them, without ".weight"
	Norm                      string // scale of the norm behind its blocks
	Head                      string // an output matrix of its own, which it has where the source has it
}

// NewMTP places a head for a decoder that the same builder made. It drafts the tokens of draftable, which are in order, alone; nil is all.
func (b *Builder) NewMTP(ops DraftOps, d *Decoder, names MTPNames, draftable []int32, blocks []Block) *MTP {
	c := b.config
	m := &MTP{
		ops: ops, decoder: d, embedding: d.embedding, head: d.head, rope: b.rope,
		embeddingNorm: b.NewNorm(names.EmbeddingNorm),
		hiddenNorm:    b.NewNorm(names.HiddenNorm),
		join:          NewLinear(b.src, 2*c.Hidden, false, model.Part{Name: names.Join, Rows: c.Hidden}),
		blocks:        blocks,
		norm:          b.NewNorm(names.Norm),
		start:         d.start,
		zeros:         b.src.Words(make([]int32, 2*b.limits.Chunks+2)),
	}
	if own := b.src.Has(names.Head); own || draftable != nil {
		name := c.headName()
		if own {
			name = names.Head
		}
		m.head = b.src.Matrix(c.Hidden, rowsOf(name, c.Vocab, draftable)...)
	}
	if draftable != nil {
		m.table = b.src.Words(draftable)
	}
	m.logits = b.src.Buffer(int64(b.limits.Chunks) * int64(m.head.Rows) * op.F32.Bytes())
	m.start.normed = b.hiddenRows() // the decoder's is what it reads
	for i, block := range blocks {
		if mixer, ok := block.Body.(Mixer); ok {
			m.memory = append(m.memory, mixer.Keep(len(m.memory)))
			m.mixers = i + 1
		}
	}
	count := make([]int32, b.limits.Chunks)
	for i := range count {
		count[i] = int32(i)
	}
	m.count = b.src.Words(count)
	b.placeBlocks(blocks)
	b.place(m)
	return m
}

// rowsOf is the rows of a tensor of so many that have some numbers, which are in order: a part for each stretch of them. nil is all rows.
func rowsOf(name string, rows int32, numbers []int32) []model.Part {
	if numbers == nil {
		return []model.Part{{Name: name, Rows: rows}}
	}
	var parts []model.Part
	for first, i := 0, 1; i <= len(numbers); i++ {
		if i < len(numbers) && numbers[i] == numbers[i-1]+1 {
			continue
		}
		n := int32(i - first)
		parts = append(parts, model.Part{Name: name, Rows: n, From: model.Pattern{First: numbers[first], Each: n, Every: rows}})
		first = i
	}
	return parts
}

// Place takes memory for what join reads. It is read before any body is at work.
func (m *MTP) Place(r *Room) { m.pair = r.Act(2 * m.embedding.Cols) }

// Memory implements model.Drafter.
func (m *MTP) Memory() []model.Memory { return m.memory }

// Draft implements model.Drafter.
func (m *MTP) Draft(q op.Stream, in *model.Drafting) {
	m.read(q, in)
	if in.Drafts == 0 || in.Chunks == 0 {
		m.store()
		return
	}
	hidden := m.h.run(m.blocks, m.norm, &m.rows)
	m.draw(q, in, 1, hidden, in.Last)
	for draft := int32(2); draft <= in.Drafts; draft++ {
		m.follow(q, in, draft, hidden)
		hidden = m.h.run(m.blocks, m.norm, &m.rows)
		m.draw(q, in, draft, hidden, m.count)
	}
}

// Columns is how many tokens can be drafted, all of which have a logit.
func (m *MTP) Columns() int32 { return m.head.Rows }

// Scores takes a step's rows in as Draft does, and leaves the logits of some of them in out, f32 [rows,Columns], for comparing with references.
// index is i32 [rows].
func (m *MTP) Scores(q op.Stream, in *model.Drafting, out, index op.Ptr, rows int32) {
	m.read(q, in)
	hidden := m.h.run(m.blocks, m.norm, &m.rows)
	m.ops.Logits(q, op.Logits{Out: out, In: hidden, Index: index, W: m.head, Rows: rows, InRows: m.rows.Rows})
}

// Last is where the logits of the last draft of each chunk lie, f32 [Chunks,Columns], for comparing with references.
func (m *MTP) Last() op.Ptr { return m.logits }

// read begins the pass over all rows of a step.
func (m *MTP) read(q op.Stream, in *model.Drafting) {
	m.rows = *in.Step
	m.rows.Memory = in.Memory
	hidden, _ := m.decoder.Hidden()
	m.begin(q, in.Behind, op.NormPair{Other: hidden, OtherRows: m.rows.Rows})
}

// follow begins the pass behind which a draft is made, over one row of each chunk: that of the draft before it, whose hidden states are given.
func (m *MTP) follow(q op.Stream, in *model.Drafting, draft int32, hidden op.Ptr) {
	pair := op.NormPair{Other: hidden, OtherRows: m.rows.Rows}
	if draft == 2 {
		pair.Index = in.Last
	}
	pass := op.Ptr(4 * (draft - 2) * in.Pitch)
	m.rows.Positions, m.rows.Slots, m.rows.Lengths = in.Positions+pass, in.Slots+pass, in.Lengths+pass
	m.rows.Starts, m.rows.Rows = in.Starts, in.Chunks
	m.begin(q, in.Next+op.Ptr(4*(draft-1)*in.Pitch), pair)
}

// begin makes the residual stream of a pass, of tokens and of the hidden states that pair chooses.
func (m *MTP) begin(q op.Stream, tokens op.Ptr, pair op.NormPair) {
	m.h = m.start
	m.h.q, m.h.rows = q, m.rows.Rows
	m.rope.Forward(m.ops, q, &m.rows)
	m.ops.Embedding(q, op.Embedding{Out: m.h.x, IDs: tokens, W: m.embedding, Rows: m.h.rows})
	pair.Out, pair.In, pair.Scale, pair.OtherScale = m.pair, m.h.x, m.embeddingNorm.scale, m.hiddenNorm.scale
	pair.Rows, pair.Cols, pair.Eps = m.h.rows, m.norm.cols, m.norm.eps
	m.ops.NormPair(q, pair)
	m.join.Forward(m.ops, q, m.h.stream, m.pair, m.h.rows, m.h.act)
}

// store queues a pass up to where the last mixer has kept its rows.
func (m *MTP) store() {
	for i, block := range m.blocks[:m.mixers] {
		m.h.enter(block, before(m.blocks, i+1, m.norm))
		if s, ok := block.Body.(Storer); ok && i+1 == m.mixers {
			s.Store(m.h.q, &m.rows, &m.h)
		} else {
			block.Body.Forward(m.h.q, &m.rows, &m.h)
		}
	}
}

// draw chooses the likeliest token of one row of each chunk.
func (m *MTP) draw(q op.Stream, in *model.Drafting, draft int32, hidden, index op.Ptr) {
	m.ops.Logits(q, op.Logits{Out: m.logits, In: hidden, Index: index, W: m.head, Rows: in.Chunks, InRows: m.rows.Rows})
	to := in.Next + op.Ptr(4*draft*in.Pitch)
	m.ops.Sample(q, op.Likeliest(to, m.logits, m.zeros, in.Chunks, m.head.Rows))
	if m.table != 0 {
		m.ops.Lookup(q, op.Lookup{IDs: to, Table: m.table, Rows: in.Chunks, Count: m.head.Rows})
	}
}
