package optest

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// persistentCases are calls with more outputs, picks or rows than persistent kernels have blocks for, so that a block computes one tile
// after another. Errors in what a block keeps from tile to tile show only then. The other sizes are as small as they can be.
func persistentCases() []*Case {
	var list []*Case
	for _, scheme := range schemes {
		if scheme != op.SchemeQ5_0 && scheme != op.SchemeQ4_K { // only CPUs have kernels for these two, and none is persistent
			list = append(list, persistentProducts(scheme)...)
			list = append(list, persistentPrompts(scheme)...)
			list = append(list, persistentExperts(scheme)...)
		}
	}
	for _, dim := range []int{64, 128, 256} {
		h := heads{64, 16, dim}
		list = append(list,
			attention(fmt.Sprintf("prompt %s", h), h.attention(op.BF16, 16, 100), []sequence{{390, 390}}, 0),
			attention(fmt.Sprintf("prompt %s and a decode", h), h.attention(op.BF16, 16, 60), []sequence{{390, 390}, {1, 40}}, 0))
	}
	return list
}

// persistentProducts are products of few rows.
func persistentProducts(scheme op.Scheme) []*Case {
	var list []*Case
	plain := func(outputs, cols, rows int) (op.Weight, int32, string) {
		w := matrix(scheme, outputs, whole(scheme, cols))
		w.Rounding = op.RoundingNone
		return w, int32(rows), fmt.Sprintf("%s %d×%d rows %d", scheme, outputs, w.Cols, rows)
	}
	for _, rows := range []int{1, 3, 7} {
		w, n, name := plain(8480, 96, rows)
		x := op.GatedLinear{W: w, Rows: n, Eps: 1e-6}
		list = append(list, of(name, x).with(factored(scheme)), of(name+" norm", x).with("Scale", factored(scheme)), tallLogits(scheme, 6240, 96, rows))
	}
	sizes := []size{
		{2112, 64, 1}, {2112, 64, 3}, {6240, 96, 7}, {3072, 96, 11}, {4992, 96, 11}, {8064, 96, 11}, {4992, 96, 24}, {8064, 96, 24}, {34048, 96, 24},
		{2880, 96, 40}, {4992, 96, 40}, {5760, 96, 40}, {8064, 96, 40}, {4256, 4160, 1}, {4256, 4160, 3}, {4256, 4160, 7},
	}
	if scheme == op.SchemeBF16 { // of so many columns
		sizes = append(sizes, size{4240, 8256, 1}, size{4256, 8256, 40})
		list = append(list, tallLogits(scheme, 4240, 8256, 1))
	}
	if scheme == op.SchemeNVFP4 {
		sizes = append(sizes, size{4240, 12320, 1})
	}
	for _, s := range sizes {
		w, n, name := plain(s.outputs, s.cols, s.rows)
		list = append(list,
			of(name+", plain", op.Linear{W: w, Rows: n, OutPitch: w.Rows}).with(factored(scheme)),
			of(name, op.LinearAdd{W: w, Rows: n, OutPitch: w.Rows}).with(factored(scheme)))
	}
	for _, s := range []size{{6400, 96, 1}, {6336, 96, 1}, {6336, 256, 3}} {
		w, n, name := plain(s.outputs, s.cols, s.rows)
		list = append(list, of(name, op.NormLinear{W: w, Rows: n, OutPitch: w.Rows, Eps: 1e-6}).with(factored(scheme)))
	}
	for _, s := range []size{{51200, 96, 11}, {34048, 96, 40}, {25600, 96, 70}, {4256, 4160, 3}, {4256, 4160, 7}} {
		list = append(list, tallLogits(scheme, s.outputs, s.cols, s.rows))
	}
	return list
}

// persistentPrompts are products of many rows. Their activations are not rounded, and then rounded in schemes whose checkpoints do so.
func persistentPrompts(scheme op.Scheme) []*Case {
	var list []*Case
	add := func(rounding op.Rounding, sizes ...size) {
		for _, s := range sizes {
			w := matrix(scheme, s.outputs, whole(scheme, s.cols))
			w.Rounding = rounding
			name := fmt.Sprintf("%s %d×%d rows %d", scheme, s.outputs, w.Cols, s.rows) + word(rounding == op.RoundingNone, ", plain")
			list = append(list, of(name, op.Linear{W: w, Rows: int32(s.rows), OutPitch: w.Rows}).with(factored(scheme)))
		}
	}
	gate := func(rounding op.Rounding, s size) {
		w := matrix(scheme, s.outputs, whole(scheme, s.cols))
		w.Rounding = rounding
		list = append(list, of(fmt.Sprintf("%s %d×%d rows %d", scheme, s.outputs, w.Cols, s.rows), op.GatedLinear{W: w, Rows: int32(s.rows)}).with(factored(scheme)))
	}
	add(op.RoundingNone, size{2304, 64, 2051}, size{8584, 128, 40}, size{8384, 40, 66}, size{4360, 40, 140}, size{4360, 328, 70}, size{12760, 40, 500})
	gate(op.RoundingNone, size{2304, 64, 2051})
	if scheme == op.SchemeBF16 {
		add(op.RoundingNone, size{5568, 40, 129}, size{2112, 40, 66}, size{8448, 40, 33})
		gate(op.RoundingNone, size{12800, 40, 400})
	}
	if rounding := matrix(scheme, 1, 1).Rounding; rounding != op.RoundingNone {
		add(rounding, size{8584, 128, 40}, size{12544, 256, 66}, size{4160, 1024, 129}, size{8448, 1024, 66}, size{8584, 1024, 66})
		gate(rounding, size{8576, 512, 260})
	}
	return list
}

// persistentExperts are calls of few picks with many outputs, and of many experts.
func persistentExperts(scheme op.Scheme) []*Case {
	var list []*Case
	type layer struct{ experts, outputs, cols, rows, top int }
	layers := []layer{{4, 3104, 64, 1, 2}, {64, 3104, 64, 1, 11}, {4, 3104, 64, 3, 2}, {64, 640, 128, 40, 8}, {64, 640, 128, 66, 8}, {64, 640, 128, 124, 8}, {64, 640, 128, 132, 8}, {8, 1280, 128, 200, 2}, {8, 2816, 128, 330, 2}, {12, 3104, 64, 4, 9}}
	switch scheme { // one is enough for so many weights
	case op.SchemeF8Block:
		layers = append(layers, layer{12, 1184, 2112, 1, 11})
	case op.SchemeNVFP4:
		layers = append(layers, layer{10, 2112, 704, 4, 9})
	}
	for _, s := range layers {
		ids := picks(s.rows, s.experts, s.top, 0)
		w := experts(scheme, s.experts, s.outputs, whole(scheme, s.cols))
		name := fmt.Sprintf("%s %d×%d×%d rows %d top %d", scheme, s.experts, s.outputs, w.Cols, s.rows, s.top)
		list = append(list,
			of(name, op.ExpertUp{W: w, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)),
			of(name, op.ExpertDown{W: w, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)),
			of(name, op.ExpertDownAdd{W: w, Rows: int32(s.rows), TopK: int32(s.top)}).group(ids).with(factored(scheme)))
	}
	return list
}
