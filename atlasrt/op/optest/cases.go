package optest

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// cases are all calls that are compared with the oracle, by operation. persistent adds those that only persistent kernels need.
func cases(o Options, persistent bool) []*Case {
	var list []*Case
	for _, group := range [][]*Case{
		packingCases(o), bufferCases(), embeddingCases(), normCases(), keeping(linearCases(o)), gateCases(), logitsCases(o),
		angleCases(), rotaryCases(o), attentionCases(o), routeCases(o), keeping(expertCases(o)), sampleCases(o), resolveCases(), advanceCases(), acceptCases(), draftRowCases(), normPairCases(), lookupCases(), fusedCases(o), sizeCases(o),
		recurrentCases(o), gatingCases(o),
	} {
		list = append(list, group...)
	}
	if persistent && !o.Short {
		list = append(list, persistentCases()...)
	}
	return list
}

// batches are calls whose rows are computed again in smaller batches, and must have the same bits there.
func batches(o Options) []*Case {
	const rows = 300
	name := func(what string) string { return "rows alone and together, " + what }
	list := []*Case{
		of(name("576 columns"), op.RMSNorm{Rows: rows, Cols: 576, Eps: 1e-5}),
		of(name("1000 columns, residual"), op.RMSNorm{Rows: rows, Cols: 1000, Eps: 1e-5}).with("Residual"),
		normPair(name("576 columns"), op.NormPair{Rows: rows, OtherRows: 310, Cols: 576, Eps: 1e-5}),
		of(name("97 columns"), op.SwiGLU{Rows: rows, Cols: 97}),
		of(name("1536 columns"), op.SwiGLU{Rows: rows, Cols: 1536}),
		of(name("4×40"), op.GatedNorm{Rows: rows, Heads: 4, HeadDim: 40, ZPitch: 163, Eps: 1e-6}),
		of(name("6×128"), op.GatedNorm{Rows: rows, Heads: 6, HeadDim: 128, ZPitch: 768, Gate: op.GateSigmoid, Eps: 1e-6}),
		of(name("1030 columns"), op.SigmoidGate{Rows: rows, Cols: 1030, GatePitch: 1030}),
		of(name("1030 columns"), op.GatedAdd{Rows: rows, Cols: 1030}),
	}
	drawing := func(r int) filters {
		return []filters{{topP: 1}, {temperature: 1, topP: 1}, {temperature: 0.8, topP: 0.9}, {temperature: 1.2, topP: 1, minP: 0.05}, {temperature: 1, topP: 1, topK: 30},
			{temperature: 1.5, topP: 1, sigma: 2}, {temperature: 1.5, topP: 0.9, exclude: 0.7, from: 0.02}, {temperature: 1, topP: 1, entropy: 3}, {temperature: 2, topP: 0.95, minP: 0.01, sigma: 3, exclude: 1, from: 0.01, topK: 50}}[r%9]
	}
	list = append(list, sample(name("vocabulary 97"), rows, 97, drawing), sample(name("vocabulary 3000"), rows, 3000, drawing))
	for i, h := range headShapes[:5] {
		x := op.RotaryCache{
			Heads: int32(h.query), KVHeads: int32(h.key), HeadDim: int32(h.dim), Pairs: int32(h.dim / 2), BlockSize: 16,
			Pairing: op.Pairing(i % 2), KVType: kvTypes[i%2], Eps: 1e-6,
		}
		list = append(list, rotary(name(h.String()), x, rows).with("QNorm", "KNorm"))
	}
	for _, scheme := range schemes {
		for i, s := range []shape{{97, 96}, {144, 576}, {64, 1536}} {
			if o.Short && i > 0 {
				break
			}
			s.cols = whole(scheme, s.cols)
			what := name(fmt.Sprintf("%s %s", scheme, s))
			index := make([]int32, rows)
			for r := range index {
				index[r] = int32(r)
			}
			logits := of(what, op.Logits{W: matrix(scheme, s.rows, s.cols), Rows: rows, InRows: rows})
			set(logits, "Index", index)
			list = append(list, logits.with(factored(scheme)),
				of(what, op.Linear{W: matrix(scheme, s.rows, s.cols), Rows: rows, OutPitch: int32(s.rows + 5*i)}).with("Bias", factored(scheme)))
		}
		ids, few, shared := picks(rows, 8, 2, 0), picks(rows, 8, 2, 1), sharedPicks(rows, 17, 9, 0)
		cols := whole(scheme, 96)
		what := name(fmt.Sprintf("%s 8×32×%d top 2", scheme, cols))
		list = append(list,
			of(what, op.ExpertUp{W: experts(scheme, 8, 64, cols), Rows: rows, TopK: 2}).group(ids).with(factored(scheme)),
			of(what, op.ExpertDown{W: experts(scheme, 8, 32, cols), Rows: rows, TopK: 2}).group(ids).with(factored(scheme)),
			of(what+", few experts", op.ExpertUp{W: experts(scheme, 8, 64, cols), Rows: rows, TopK: 2}).group(few).with(factored(scheme)),
			of(what+", few experts", op.ExpertDown{W: experts(scheme, 8, 32, cols), Rows: rows, TopK: 2}).group(few).with(factored(scheme)))
		what = name(fmt.Sprintf("%s 17×32×%d top 9, shared", scheme, cols))
		list = append(list,
			of(what, op.ExpertUp{W: experts(scheme, 17, 64, cols), Rows: rows, TopK: 9}).group(shared).with(factored(scheme)),
			of(what, op.ExpertDown{W: experts(scheme, 17, 32, cols), Rows: rows, TopK: 9}).group(shared).with(factored(scheme)))
	}
	return list
}
