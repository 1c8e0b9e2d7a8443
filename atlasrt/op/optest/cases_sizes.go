package optest

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// sizeCases are calls of sizes for which GPUs have special kernels that no other case reaches. Matrices have the outputs or the columns of
// real models, and the other side is as small as it can be.
func sizeCases(o Options) []*Case {
	if o.Short {
		return nil
	}
	list := []*Case{
		of("3×4000", op.RMSNorm{Rows: 3, Cols: 4000, Eps: 1e-6}).with("Residual"),
		rotary("2/1×256 rows 130", op.RotaryCache{Heads: 2, KVHeads: 1, HeadDim: 256, Pairs: 128, BlockSize: 16, KVType: op.BF16, Eps: 1e-6}, 130).with("QNorm", "KNorm"),
		rotary("2/1×320 rows 5", op.RotaryCache{Heads: 2, KVHeads: 1, HeadDim: 320, Pairs: 160, BlockSize: 16, KVType: op.BF16, Eps: 1e-6}, 5).with("QNorm", "KNorm"),
	}
	for _, s := range []struct{ rows, experts, shared int }{{9, 128, 0}, {24, 500, 0}, {6, 256, 0}, {8, 257, 1}} {
		c := of(fmt.Sprintf("rows %d experts %d top 8 shared %d", s.rows, s.experts, s.shared),
			op.Route{Rows: int32(s.rows), Experts: int32(s.experts), TopK: 8, Shared: int32(s.shared), Scale: 1})
		c.numbers["Logits"] = distinct(s.rows, s.experts)
		list = append(list, c)
	}
	list = append(list, sizedAttention()...)
	for _, scheme := range schemes {
		list = append(list, sizedProducts(scheme)...)
		list = append(list, sizedExperts(scheme)...)
		list = append(list, sharedExperts(scheme)...)
	}
	return list
}

// sizedAttention is prompts with many heads, alone and beside other sequences, and numbers of decoding sequences that kernels divide among
// blocks in different ways.
func sizedAttention() []*Case {
	list := []*Case{
		attention("16500 tokens", heads{4, 1, 128}.attention(op.BF16, 16, 0), decodes(1, 16500, 0), 0),
		attention("prompt 128/2×128, window 40", heads{128, 2, 128}.attention(op.BF16, 16, 40), []sequence{{1536, 1540}}, 0),
	}
	for _, dim := range []int{64, 128} {
		h := heads{8, 8, dim}
		for _, n := range []int{1, 2, 3, 4, 6, 9} { // several tiles for each block of a cluster, whatever its size
			list = append(list, attention(fmt.Sprintf("%d decodes %s of 900 and more", n, h), h.attention(op.BF16, 16, 0), decodes(n, 900, 141), 0))
		}
		h = heads{8, 2, dim} // four rows of four heads are two groups of query vectors
		list = append(list, attention(fmt.Sprintf("four rows and decodes %s", h), h.attention(op.BF16, 16, 0), []sequence{{4, 1900}, {1, 500}, {1, 70}, {0, 0}}, 0))
	}
	for _, h := range []heads{{16, 2, 256}, {24, 4, 256}, {32, 2, 256}} { // rows with drafts: several groups of query vectors, beside one another or in turns
		for _, batch := range [][]sequence{
			{{4, 1100}}, {{4, 1900}, {1, 500}, {0, 0}, {2, 70}}, {{6, 130}, {0, 5}, {1, 1}}, {{4, 300}, {4, 4}, {4, 700}, {4, 65}},
		} {
			list = append(list, attention(fmt.Sprintf("rows with drafts %s, %d sequences", h, len(batch)), h.attention(op.BF16, 16, 0), batch, len(batch)%2))
		}
	}
	for _, dim := range []int{32, 64, 128, 256} {
		h := heads{32, 4, dim}
		x := h.attention(op.BF16, 16, 0)
		list = append(list,
			attention(fmt.Sprintf("prompt %s", h), x, []sequence{{130, 150}}, 0),
			attention(fmt.Sprintf("prompts and a decode %s", h), x, []sequence{{100, 100}, {1, 40}, {35, 60}}, 2))
		h = heads{8, 4, dim}
		for _, n := range []int{3, 5, 8, 9, 11, 12} {
			list = append(list, attention(fmt.Sprintf("%d decodes %s", n, h), h.attention(op.BF16, 16, 0), decodes(n, 30, 9), 0))
		}
		list = append(list, attention(fmt.Sprintf("32 decodes %s of 300", h), h.attention(op.BF16, 16, 0), decodes(32, 300, 9), 0))
	}
	return list
}

// size is the size of a product.
type size struct{ outputs, cols, rows int }

// sizedProducts are products with one matrix.
func sizedProducts(scheme op.Scheme) []*Case {
	var list []*Case
	sizes := []size{
		{24, 4160, 1}, {24, 4160, 3}, {24, 4160, 7}, {24, 12416, 1}, {24, 12416, 3}, {24, 12416, 7}, // many columns
		{2600, 128, 3}, {4608, 96, 1}, {4608, 96, 3}, {4608, 96, 7}, {2000, 96, 11}, {3200, 96, 11}, {4608, 96, 11}, {5000, 96, 11}, {6208, 96, 11}, // many outputs
		{3000, 96, 24}, {3200, 96, 24}, {6208, 96, 24}, {12800, 96, 3}, {12800, 96, 24}, {2600, 96, 40}, {3200, 96, 40}, {8456, 96, 40}, {12800, 96, 40},
		{136, 4096, 100}, {2056, 1600, 128}, {3976, 1280, 66}, {4616, 960, 100}, // more columns than a kernel's ring buffer holds
	}
	if scheme == op.SchemeBF16 {
		sizes = append(sizes, size{136, 2048, 150}, size{2056, 1040, 150}, size{3976, 784, 130}, size{4616, 528, 150})
	}
	for _, s := range sizes {
		s.cols = whole(scheme, s.cols)
		w, rows, name := matrix(scheme, s.outputs, s.cols), int32(s.rows), fmt.Sprintf("%s %d×%d rows %d", scheme, s.outputs, s.cols, s.rows)
		w.Rounding = op.RoundingNone
		list = append(list,
			of(name+", plain", op.Linear{W: w, Rows: rows, OutPitch: w.Rows}).with(factored(scheme)),
			of(name, op.LinearAdd{W: w, Rows: rows, OutPitch: w.Rows}).with(factored(scheme)))
		if s.outputs == 4608 {
			list = append(list, of(name, op.NormLinear{W: w, Rows: rows, OutPitch: w.Rows, Eps: 1e-6}).with(factored(scheme)))
		}
		if s.cols > 4096 {
			list = append(list, tallLogits(scheme, s.outputs, s.cols, s.rows))
		}
	}
	list = append(list, tallLogits(scheme, 300, 96, 70))
	for _, s := range []size{ // a GPU's large tiles
		{1056, 40, 250}, {1536, 40, 700}, {2500, 40, 130}, {4100, 40, 130}, {4500, 40, 200}, {8440, 40, 256}, {11264, 40, 384},
		{4288, 1440, 130}, {5300, 1040, 150}, {8456, 520, 130}, {12680, 584, 66}, {12680, 456, 130},
	} {
		w := matrix(scheme, s.outputs, whole(scheme, s.cols))
		w.Rounding = op.RoundingNone
		list = append(list, of(fmt.Sprintf("%s %d×%d rows %d, plain", scheme, s.outputs, w.Cols, s.rows), op.Linear{W: w, Rows: int32(s.rows), OutPitch: w.Rows}).with(factored(scheme)))
	}
	gated := []shape{{256, 96}}
	if matrix(scheme, 1, 1).Rounding != op.RoundingNone {
		gated = append(gated, shape{384, 640}, shape{6336, 128})
		for _, s := range []size{{40, 640, 2051}, {12488, 640, 40}, {136, 4096, 130}, {136, 4224, 130}, {12488, 1280, 66}} { // all but the first: a last tile of few outputs and many columns
			w := matrix(scheme, s.outputs, s.cols)
			list = append(list, of(fmt.Sprintf("%s %d×%d rows %d", scheme, s.outputs, s.cols, s.rows), op.Linear{W: w, Rows: int32(s.rows), OutPitch: w.Rows}).with(factored(scheme)))
		}
	}
	for _, s := range gated {
		w := matrix(scheme, s.rows, whole(scheme, s.cols))
		list = append(list, of(fmt.Sprintf("%s %d×%d rows 260", scheme, s.rows, w.Cols), op.GatedLinear{W: w, Rows: 260}).with(factored(scheme)))
	}
	return list
}

// sizedExperts are calls of few rows, or of about as many rows for each expert as a tile holds.
func sizedExperts(scheme op.Scheme) []*Case {
	var list []*Case
	for _, s := range []struct{ experts, inner, hidden, rows, top int }{
		{8, 64, 96, 1, 4}, {64, 32, 96, 1, 11}, {12, 32, 2112, 1, 9}, {12, 16, 4096, 1, 12}, {8, 64, 96, 3, 2}, {64, 32, 96, 2, 11}, {64, 32, 96, 3, 10}, {64, 32, 96, 3, 12}, {64, 32, 96, 3, 13}, {16, 768, 64, 2, 3}, {64, 32, 96, 4, 8}, {64, 32, 96, 30, 8}, {64, 32, 96, 40, 8}, {600, 16, 32, 20, 4}, {513, 16, 32, 64, 11}, {1024, 16, 32, 80, 12}, {1025, 16, 32, 20, 4}, {4, 64, 128, 30, 2}, {4, 64, 128, 100, 2},
	} {
		ids := picks(s.rows, s.experts, s.top, 0)
		name := fmt.Sprintf("%s %d×%d×%d rows %d top %d", scheme, s.experts, s.inner, s.hidden, s.rows, s.top)
		up := experts(scheme, s.experts, 2*s.inner, whole(scheme, s.hidden))
		down := experts(scheme, s.experts, s.hidden, whole(scheme, s.inner))
		up.Rounding, down.Rounding = op.RoundingNone, op.RoundingNone
		list = append(list,
			of(name+", plain", op.ExpertUp{W: up, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)),
			of(name+", plain", op.ExpertDown{W: down, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)),
			of(name, op.ExpertDownAdd{W: down, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)))
	}
	return list
}

// sharedExperts are calls of two to four rows, as a sequence with drafts has them, most with a last expert that every row picks.
func sharedExperts(scheme op.Scheme) []*Case {
	var list []*Case
	for _, s := range []struct {
		mixed
		rows  int
		which string
	}{
		{mixed{17, 48, 104, 9}, 2, ""}, {mixed{17, 48, 104, 9}, 3, ""}, {mixed{17, 48, 104, 9}, 4, ""}, {mixed{17, 48, 104, 9}, 4, "all rows alike"},
		{mixed{65, 32, 96, 9}, 4, "rows apart"}, {mixed{64, 32, 96, 9}, 4, "none shared"}, {mixed{10, 1024, 48, 9}, 4, ""}, {mixed{10, 16, 3072, 9}, 4, ""},
	} {
		ids := sharedPicks(s.rows, s.count, s.top, 0)
		switch s.which {
		case "all rows alike":
			ids = sharedPicks(s.rows, s.count, s.top, 1)
		case "rows apart", "none shared":
			for p := range ids {
				if s.which == "none shared" || p%s.top < s.top-1 {
					ids[p] = int32(p * 7 % 64)
				}
			}
		}
		name := fmt.Sprintf("%s %d×%d×%d rows %d top %d, shared", scheme, s.count, s.inner, s.hidden, s.rows, s.top) + word(s.which != "", ", "+s.which)
		up := experts(scheme, s.count, 2*s.inner, whole(scheme, s.hidden))
		down := experts(scheme, s.count, s.hidden, whole(scheme, s.inner))
		up.Rounding, down.Rounding = op.RoundingNone, op.RoundingNone
		list = append(list,
			of(name, op.ExpertUp{W: up, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)),
			of(name, op.ExpertDown{W: down, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)),
			of(name, op.ExpertDownAdd{W: down, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)))
	}
	return list
}
