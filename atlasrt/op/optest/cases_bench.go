package optest

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// network is the sizes of a model that benchmarks are run at.
type network struct {
	name                 string
	hidden, inner, vocab int
	heads                heads
}

// benchCases are the calls of real models: one decode, eight decodes, a prefill.
func benchCases(o Options) []*Case {
	networks := []network{{"SmolLM2-135M", 576, 1536, 49152, heads{9, 3, 64}}}
	if !o.Short {
		networks = append(networks,
			network{"Qwen3-0.6B", 1024, 3072, 151936, heads{16, 8, 128}},
			network{"Qwen3-8B", 4096, 12288, 151936, heads{32, 8, 128}})
	}
	var list []*Case
	for _, n := range networks {
		for _, rows := range []int{1, 8, 512} {
			list = append(list, n.plain(rows)...)
			for _, scheme := range schemes {
				list = append(list, n.products(scheme, rows)...)
			}
		}
		list = append(list, n.attention()...)
		list = append(list, n.sampling()...)
	}
	if !o.Short {
		list = append(list, network{name: "vocabulary 248320", vocab: 248320}.sampling()...)
	}
	for _, scheme := range schemes {
		list = append(list, mixture(scheme, 1, o)...)
		list = append(list, mixture(scheme, 64, o)...)
	}
	s := state{16, 32, 128, 128, false}
	if o.Short {
		s = smallStates[0]
	}
	for _, n := range []int{1, 64} {
		list = append(list, recurrent(s, decodesAt(n, 1024))...)
	}
	for _, n := range []int{512, 8192} {
		list = append(list, recurrent(s, []stretch{{rows: n}})...)
	}
	return append(list, of("64 MiB", op.Copy{Bytes: 64 << 20}), of("64 MiB", op.Fill{Count: 16 << 20}))
}

// plain are the ops without weights.
func (n network) plain(rows int) []*Case {
	name := func(what string) string { return fmt.Sprintf("%s %s rows %d", n.name, what, rows) }
	x := op.RotaryCache{
		Heads: int32(n.heads.query), KVHeads: int32(n.heads.key), HeadDim: int32(n.heads.dim), Pairs: int32(n.heads.dim / 2),
		BlockSize: 16, KVType: op.BF16, Eps: 1e-6,
	}
	return []*Case{
		of(name("hidden"), op.RMSNorm{Rows: int32(rows), Cols: int32(n.hidden), Eps: 1e-6}).with("Residual"),
		of(name("gate"), op.SwiGLU{Rows: int32(rows), Cols: int32(n.inner)}),
		rotary(name("heads"), x, rows).with("QNorm", "KNorm"),
	}
}

// products are the products of one layer, and the output matrix and the embedding where they are small enough.
func (n network) products(scheme op.Scheme, rows int) []*Case {
	h := n.heads
	var list []*Case
	for _, m := range []struct {
		what string
		shape
	}{
		{"qkv", shape{(h.query + 2*h.key) * h.dim, n.hidden}},
		{"output", shape{n.hidden, h.query * h.dim}},
		{"gate and up", shape{2 * n.inner, n.hidden}},
		{"down", shape{n.hidden, n.inner}},
	} {
		if int64(m.cols)%scheme.Block() != 0 {
			continue
		}
		name := fmt.Sprintf("%s %s %s %s rows %d", n.name, scheme, m.what, m.shape, rows)
		list = append(list, of(name, op.Linear{W: matrix(scheme, m.rows, m.cols), Rows: int32(rows), OutPitch: int32(m.rows)}).with(factored(scheme)))
	}
	if rows > 8 || n.hidden > 2048 || int64(n.hidden)%scheme.Block() != 0 { // larger ones would take gigabytes
		return list
	}
	index := make([]int32, rows)
	for i := range index {
		index[i] = int32(i)
	}
	name := fmt.Sprintf("%s %s %s rows %d", n.name, scheme, shape{n.vocab, n.hidden}, rows)
	logits := of(name, op.Logits{W: matrix(scheme, n.vocab, n.hidden), Rows: int32(rows), InRows: int32(rows)})
	set(logits.with(factored(scheme)), "Index", index)
	embedding := of(name, op.Embedding{W: matrix(scheme, n.vocab, n.hidden), Rows: int32(rows)})
	set(embedding.with(factored(scheme)), "IDs", index)
	return append(list, logits, embedding)
}

func (n network) attention() []*Case {
	x := n.heads.attention(op.BF16, 16, 0)
	decodes := make([]sequence, 16)
	for i := range decodes {
		decodes[i] = sequence{1, 1024}
	}
	return []*Case{
		attention(n.name+" decode at 1024", x, decodes[:1], 0),
		attention(n.name+" decode at 8192", x, []sequence{{1, 8192}}, 0),
		attention(n.name+" 16 decodes at 1024", x, decodes, 0),
		attention(n.name+" prefill of 512", x, []sequence{{512, 512}}, 0),
	}
}

func (n network) sampling() []*Case {
	all := func(int) filters { return filters{temperature: 0.7, topP: 0.9, minP: 0.01, topK: 40} }
	more := func(int) filters {
		return filters{temperature: 0.7, topP: 0.9, minP: 0.01, topK: 40, sigma: 3, entropy: 0.001, exclude: 1, from: 0.05}
	}
	greedy := func(int) filters { return filters{topP: 1} }
	var list []*Case
	for _, rows := range []int{1, 8, 64} {
		list = append(list,
			sample(fmt.Sprintf("%s greedy rows %d", n.name, rows), rows, n.vocab, greedy),
			sample(fmt.Sprintf("%s all filters rows %d", n.name, rows), rows, n.vocab, all),
			sample(fmt.Sprintf("%s all samplers rows %d", n.name, rows), rows, n.vocab, more))
	}
	return list
}

// recurrent is the ops of a layer whose state has a shape, for a batch of sequences.
func recurrent(s state, batch []stretch) []*Case {
	rows := 0
	for _, b := range batch {
		rows += b.rows
	}
	name := fmt.Sprintf("%s %d sequences rows %d", s, len(batch), rows)
	rule := s.rule(0)
	rule.GatesPitch = 2 * rule.ValueHeads
	return []*Case{
		conv(name, op.CausalConv{Channels: int32(s.channels()), Width: 4}, batch, 0),
		of(name, rule).stretches(batch, 0).decays(),
		of(name, op.GatedNorm{Rows: int32(rows), Heads: int32(s.values), HeadDim: int32(s.valueDim), ZPitch: int32(s.values * s.valueDim), Eps: 1e-6}),
		of(name, s.net(0, op.GateSilu)).stretches(batch, 0).decays(),
	}
}

// decodesAt are n sequences of one row each at a position.
func decodesAt(n, position int) []stretch {
	return slices.Repeat([]stretch{{rows: 1, position: position}}, n)
}

// mixture is a layer of Qwen3-30B-A3B with 32 of its 128 experts, or 16 in short runs.
func mixture(scheme op.Scheme, rows int, o Options) []*Case {
	const inner, hidden, top = 768, 2048, 8
	count := 32
	if o.Short {
		count = 16
	}
	name := fmt.Sprintf("%s %d×%d×%d top %d rows %d", scheme, count, inner, hidden, top, rows)
	ids := picks(rows, count, top, 0)
	return []*Case{
		of(name, op.ExpertUp{W: experts(scheme, count, 2*inner, hidden), Rows: int32(rows), TopK: top}).group(ids).with(factored(scheme)),
		of(name, op.ExpertDown{W: experts(scheme, count, hidden, inner), Rows: int32(rows), TopK: top}).group(ids).with(factored(scheme)),
	}
}
