package optest

import (
	"fmt"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// layerSchemes are those that kernels of whole halves are made for: the others' cases would cost more than they prove.
var layerSchemes = []op.Scheme{op.SchemeBF16, op.SchemeF8Block, op.SchemeNVFP4}

// layerCases are those of halves of layers.
func layerCases(o Options) []*Case {
	var list []*Case
	for _, scheme := range layerSchemes {
		list = append(list, attentionLayerCases(scheme, o)...)
		list = append(list, feedLayerCases(scheme, o)...)
		list = append(list, mixtureLayerCases(scheme, o)...)
	}
	return list
}

// attentionLayer makes a case whose rows' slots are those of their positions. x gives heads, sizes and types.
func attentionLayer(name string, x op.AttentionLayer, scheme op.Scheme, hidden int, batch []sequence) *Case {
	h := heads{int(x.Heads), int(x.KVHeads), int(x.HeadDim)}
	a := attention(name, h.attention(x.KVType, int(x.BlockSize), int(x.Window)), batch, 0)
	given := a.args.Interface().(op.PagedAttention)
	x.Rows, x.Seqs, x.MaxBlocks, x.Blocks, x.Factor, x.Eps = given.Rows, given.Seqs, given.MaxBlocks, given.Blocks, given.Scale, 1e-6
	x.W, x.Project = matrix(scheme, (h.query+2*h.key)*h.dim, hidden), matrix(scheme, hidden, h.query*h.dim)
	c := of(name, x).with("W.Scale", "Project.Scale")
	if factored(scheme) == "" {
		clear(c.given)
	}
	for _, list := range []string{"Starts", "Lengths", "Tables"} {
		c.values[list] = a.values[list]
	}
	var slots []int32
	tables := get[int32](a.values["Tables"])
	for s, q := range batch {
		for p := q.length - q.rows; p < q.length; p++ {
			slots = append(slots, tables[s*int(x.MaxBlocks)+p/int(x.BlockSize)]*x.BlockSize+int32(p)%x.BlockSize)
		}
	}
	set(c, "Slots", slots)
	set(c, "Angles", anyAngles(rand.New(rand.NewPCG(uint64(hidden), uint64(len(name)))), int(x.Rows), int(x.Pairs)))
	return c
}

func attentionLayerCases(scheme op.Scheme, o Options) []*Case {
	one := func(lengths ...int) []sequence {
		list := make([]sequence, len(lengths))
		for i, n := range lengths {
			list[i] = sequence{1, n}
		}
		return list
	}
	var list []*Case
	add := func(hidden int, h heads, size, window int, kv op.DType, batch []sequence, extras ...string) {
		x := op.AttentionLayer{
			Heads: int32(h.query), KVHeads: int32(h.key), HeadDim: int32(h.dim), Pairs: int32(h.dim / 2), BlockSize: int32(size), Window: int32(window), KVType: kv,
		}
		name := fmt.Sprintf("%s %s hidden %d blocks of %d window %d %s, rows and lengths %v %v", scheme, h, hidden, size, window, kv, batch, extras)
		c := attentionLayer(name, x, scheme, whole(scheme, hidden), batch).with(extras...)
		if len(list)%2 == 0 {
			c.alias["Out"] = "In"
		}
		list = append(list, c)
	}
	sum, norms := []string{"Residual", "Sum"}, []string{"QNorm", "KNorm", "Residual", "Sum"}
	add(512, heads{4, 1, 128}, 16, 0, op.BF16, one(1), norms...)
	add(512, heads{4, 1, 128}, 16, 0, op.BF16, one(130), sum...)
	add(256, heads{8, 2, 128}, 16, 0, op.BF16, one(64, 1), norms...)
	add(256, heads{8, 2, 64}, 32, 0, op.BF16, one(65, 300, 7), "Bias")
	add(512, heads{8, 2, 128}, 64, 0, op.BF16, one(1100, 63, 64, 65), norms...)
	if o.Short {
		return list
	}
	add(1024, heads{16, 4, 128}, 16, 0, op.BF16, one(1025), norms...)
	add(512, heads{32, 4, 128}, 16, 0, op.BF16, one(1024, 1, 33, 500), norms...)
	add(512, heads{32, 8, 128}, 16, 0, op.BF16, one(1040), norms...)
	add(512, heads{8, 8, 128}, 16, 100, op.BF16, one(700, 90), norms...)
	add(256, heads{4, 2, 128}, 16, 0, op.BF16, []sequence{{3, 70}, {1, 20}}, norms...)
	add(256, heads{4, 2, 128}, 16, 0, op.BF16, one(4100), norms...)
	add(256, heads{4, 2, 128}, 16, 0, op.F32, one(50), norms...)
	add(256, heads{8, 2, 32}, 16, 0, op.BF16, one(50, 20), norms...)
	add(256, heads{8, 2, 128}, 16, 0, op.BF16, one(10, 20, 30, 40, 50, 60, 70, 80, 90), norms...)
	return list
}

func feedLayerCases(scheme op.Scheme, o Options) []*Case {
	shapes := []struct{ hidden, inner int }{{96, 160}, {512, 768}, {576, 1536}}
	if !o.Short {
		shapes = append(shapes, struct{ hidden, inner int }{1024, 3072}, struct{ hidden, inner int }{2592, 256}, struct{ hidden, inner int }{128, 12288}, struct{ hidden, inner int }{4096, 96})
	}
	var list []*Case
	for i, s := range shapes {
		for k, rows := range []int{1, 2, 4, 7} {
			hidden, inner := whole(scheme, s.hidden), whole(scheme, s.inner)
			x := op.FeedLayer{W: matrix(scheme, 2*inner, hidden), Down: matrix(scheme, hidden, inner), Rows: int32(rows), Eps: 1e-6}
			residual := (i+k)%3 != 0
			c := of(fmt.Sprintf("%s %d·%d rows %d", scheme, hidden, inner, rows)+word(residual, " residual"), x).summed(residual)
			if factored(scheme) != "" {
				c.with("W.Scale", "Down.Scale")
			}
			if k == 1 {
				c.alias["Out"] = "In"
			}
			list = append(list, c)
		}
	}
	return list
}

// mixtureLayerCases have routers as normRouteCases have.
func mixtureLayerCases(scheme op.Scheme, o Options) []*Case {
	var list []*Case
	for i, s := range []struct{ rows, experts, hidden, inner, top int }{{1, 16, 512, 256, 8}, {2, 8, 256, 96, 2}, {4, 32, 512, 768, 8}, {1, 128, 1024, 96, 8}, {3, 128, 256, 128, 8}, {4, 128, 2048, 64, 8}, {5, 20, 320, 64, 3}} {
		if o.Short && i > 2 {
			break
		}
		hidden, inner := whole(scheme, s.hidden), whole(scheme, s.inner)
		x := op.MixtureLayer{
			W: experts(scheme, s.experts, 2*inner, hidden), Down: experts(scheme, s.experts, hidden, inner), Router: matrix(op.SchemeBF16, s.experts, hidden),
			Rows: int32(s.rows), TopK: int32(s.top), Normalise: int32(i+1) % 2, Routing: op.Routing(i % 3 / 2), Factor: []float32{1, 2.5}[i%2], Eps: 1e-6,
		}
		residual := i != 1
		c := of(fmt.Sprintf("%s %d experts %d·%d top %d rows %d", scheme, s.experts, hidden, inner, s.top, s.rows)+word(residual, " residual"), x)
		if factored(scheme) != "" {
			c.with("W.Scale", "Down.Scale")
		}
		c.apart("Router", s.rows, s.experts, hidden, uint64(i), residual)
		if i%2 == 0 {
			c.alias["Out"] = "In"
		}
		list = append(list, c)
	}
	return list
}
