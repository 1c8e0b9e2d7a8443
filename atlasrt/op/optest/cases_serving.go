package optest

import (
	"fmt"
	"math/rand/v2"

	"github.com/atlas-inference/atlas/atlasrt/op"
)

// serving is the sizes that a server on a GPU meets: from one decode to a long prefill.
type serving struct {
	linear, output []shape // matrices of layers, and output matrices
	rows, outputs  []int   // numbers of rows that the two are multiplied with
	hidden, inner  []int   // columns of norms and of gates
	experts        mixed
	expertRows     []int
	heads          []heads
	contexts       []int
	sequences      []int // decoding at a time
	prompts        []int
	state          state
	hybrids        []hybrid
	vocab          int
	plainRows      []int
	sampled        []int
}

// mixed is a layer of experts.
type mixed struct{ count, inner, hidden, top int }

// hybrid is the layers of a model with recurrent layers and a shared expert, which is the last one of experts and the last pick of each row.
type hybrid struct {
	experts mixed
	state   state
}

// largeServing has the sizes of Qwen3-8B and Qwen3-30B-A3B, and of Qwen3.5-35B-A3B, Qwen3.5-122B-A10B and Qwen3-Next-80B-A3B what differs; smallServing
// is for tests.
func largeServing() serving {
	return serving{
		linear:  []shape{{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288}, {5120, 2048}, {2048, 4096}},
		output:  []shape{{151936, 4096}, {151936, 2048}},
		rows:    []int{1, 16, 64, 512, 8192},
		outputs: []int{1, 4, 16, 64},
		hidden:  []int{4096, 2048}, inner: []int{12288},
		experts: mixed{128, 768, 2048, 8}, expertRows: []int{1, 4, 16, 64, 512, 8192},
		heads: []heads{{32, 8, 128}, {32, 4, 128}}, contexts: []int{1 << 10, 8 << 10, 32 << 10},
		sequences: []int{1, 4, 16, 64}, prompts: []int{2 << 10, 8 << 10},
		state:   largeStates[0],
		hybrids: []hybrid{{mixed{257, 512, 2048, 9}, largeStates[0]}, {mixed{257, 1024, 3072, 9}, largeStates[2]}, {mixed{513, 512, 2048, 11}, largeStates[0]}},
		vocab:   151936, plainRows: []int{1, 64, 8192}, sampled: []int{1, 16, 64},
	}
}

func smallServing() serving {
	return serving{
		linear: []shape{{64, 256}}, output: []shape{{512, 256}}, rows: []int{1, 5}, outputs: []int{1},
		hidden: []int{256}, inner: []int{64},
		experts: mixed{8, 32, 256, 2}, expertRows: []int{1, 3},
		heads: []heads{{4, 2, 64}}, contexts: []int{40}, sequences: []int{1, 3}, prompts: []int{30},
		state: smallStates[0], hybrids: []hybrid{{mixed{17, 32, 256, 3}, smallStates[0]}}, vocab: 512, plainRows: []int{2}, sampled: []int{2},
	}
}

// servingCases are for devices whose steps are replayed, with the schemes that a set has.
func servingCases(o Options, has func(op.Scheme) bool) []*Case {
	s := largeServing()
	if o.Short {
		s = smallServing()
	}
	var list []*Case
	for _, scheme := range schemes {
		if has(scheme) {
			list = append(list, s.products(scheme)...)
			list = append(list, s.mixture(scheme)...)
		}
	}
	list = append(list, s.routes()...)
	list = append(list, s.attention()...)
	list = append(list, s.plain()...)
	for _, n := range s.sequences {
		list = append(list, recurrent(s.state, decodesAt(n, s.contexts[0]))...)
	}
	for _, n := range s.prompts {
		list = append(list, recurrent(s.state, []stretch{{rows: n}})...)
	}
	for _, h := range s.hybrids {
		list = append(list, h.router())
		for _, n := range []int{1, 4, 64, 128, 256} { // the last two: 64 sequences with one and with three drafts each
			if h.state != s.state && n <= 64 {
				list = append(list, recurrent(h.state, decodesAt(n, s.contexts[0]))...)
			}
			for _, scheme := range []op.Scheme{op.SchemeF8Block, op.SchemeNVFP4} {
				if has(scheme) {
					list = append(list, h.mixture(scheme, n)...)
				}
			}
		}
	}
	list = append(list, s.sampling()...)
	return append(list, of("256 MiB", op.Copy{Bytes: 256 << 20}), of("256 MiB", op.Fill{Count: 64 << 20}))
}

func (s serving) products(scheme op.Scheme) []*Case {
	var list []*Case
	for _, m := range s.linear {
		for _, rows := range s.rows {
			name := fmt.Sprintf("%s %s rows %d", scheme, m, rows)
			list = append(list, of(name, op.Linear{W: matrix(scheme, m.rows, m.cols), Rows: int32(rows), OutPitch: int32(m.rows)}).with(factored(scheme)))
		}
	}
	for _, m := range s.output {
		for _, rows := range s.outputs {
			c := of(fmt.Sprintf("%s %s rows %d", scheme, m, rows), op.Logits{W: matrix(scheme, m.rows, m.cols), Rows: int32(rows), InRows: int32(rows)})
			set(c.with(factored(scheme)), "Index", counting(rows))
			list = append(list, c)
		}
	}
	return list
}

// counting is 0 … n-1.
func counting(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

func (s serving) mixture(scheme op.Scheme) []*Case {
	x := s.experts
	up, down := experts(scheme, x.count, 2*x.inner, x.hidden), experts(scheme, x.count, x.hidden, whole(scheme, x.inner))
	var list []*Case
	for _, rows := range s.expertRows {
		name := func(w op.Weight) string {
			return fmt.Sprintf("%s %d×%d×%d top %d rows %d", scheme, w.Count, w.Rows, w.Cols, x.top, rows)
		}
		ids := picks(rows, x.count, x.top, 0)
		list = append(list,
			of(name(up), op.ExpertUp{W: up, Rows: int32(rows), TopK: int32(x.top)}).group(ids).with(factored(scheme)),
			of(name(down), op.ExpertDown{W: down, Rows: int32(rows), TopK: int32(x.top)}).group(ids).with(factored(scheme)))
	}
	return list
}

// router chooses experts for one row.
func (h hybrid) router() *Case {
	x := h.experts
	return of(fmt.Sprintf("%d×%d top %d, shared", x.count, x.hidden, x.top), op.NormRoute{
		W: matrix(op.SchemeBF16, x.count, x.hidden), Rows: 1, TopK: int32(x.top), Shared: 1, Normalise: 1, Factor: 1, Eps: 1e-6,
	}).summed(true)
}

func (h hybrid) mixture(scheme op.Scheme, rows int) []*Case {
	x := h.experts
	ids := sharedPicks(rows, x.count, x.top, 0)
	up, down := experts(scheme, x.count, 2*x.inner, x.hidden), experts(scheme, x.count, x.hidden, whole(scheme, x.inner))
	name := func(w op.Weight) string {
		return fmt.Sprintf("%s %d×%d×%d top %d rows %d, shared", scheme, w.Count, w.Rows, w.Cols, x.top, rows)
	}
	return []*Case{
		of(name(up), op.ExpertUp{W: up, Rows: int32(rows), TopK: int32(x.top)}).group(ids).with(factored(scheme)),
		of(name(down), op.ExpertDownAdd{W: down, Rows: int32(rows), TopK: int32(x.top)}).group(ids).with(factored(scheme)),
	}
}

func (s serving) routes() []*Case {
	var list []*Case
	for _, rows := range s.expertRows {
		name := fmt.Sprintf("%d experts top %d rows %d", s.experts.count, s.experts.top, rows)
		list = append(list, of(name, op.Route{
			Rows: int32(rows), Experts: int32(s.experts.count), TopK: int32(s.experts.top), Normalise: 1, Scale: 1,
		}))
	}
	return list
}

func (s serving) attention() []*Case {
	var list []*Case
	for _, h := range s.heads {
		x := h.attention(op.BF16, 16, 0)
		x.QPitch = int32((h.query + 2*h.key) * h.dim) // queries lie among keys and values
		for _, length := range s.contexts {
			for _, n := range s.sequences {
				batch := make([]sequence, n)
				for i := range batch {
					batch[i] = sequence{1, length}
				}
				list = append(list, attention(fmt.Sprintf("%s %d decodes at %d", h, n, length), x, batch, 0))
				if n%4 != 0 || length != s.contexts[0] {
					continue
				}
				for i := range batch { // as many tokens in all, but unequal sequences: that should take the same time
					batch[i].length = length / 2
					if i%4 == 3 {
						batch[i].length *= 5
					}
				}
				list = append(list, attention(fmt.Sprintf("%s %d decodes at %d, one of four five times as long", h, n, length), x, batch, 0))
			}
		}
		for _, n := range s.prompts {
			list = append(list, attention(fmt.Sprintf("%s prefill of %d", h, n), x, []sequence{{n, n}}, 0))
		}
	}
	return list
}

// plain are the ops without weights.
func (s serving) plain() []*Case {
	var list []*Case
	for _, rows := range s.plainRows {
		for _, n := range s.hidden {
			list = append(list, of(fmt.Sprintf("%d residual rows %d", n, rows), op.RMSNorm{Rows: int32(rows), Cols: int32(n), Eps: 1e-6}).with("Residual"))
		}
		for _, n := range s.inner {
			list = append(list, of(fmt.Sprintf("%d rows %d", n, rows), op.SwiGLU{Rows: int32(rows), Cols: int32(n)}))
		}
		for _, h := range s.heads {
			x := op.RotaryCache{
				Heads: int32(h.query), KVHeads: int32(h.key), HeadDim: int32(h.dim), Pairs: int32(h.dim / 2),
				BlockSize: 16, KVType: op.BF16, Eps: 1e-6,
			}
			c := rotary(fmt.Sprintf("%s rows %d", h, rows), x, rows).with("QNorm", "KNorm")
			set(c, "Slots", counting(rows)) // none is padding
			list = append(list, c)
		}
	}
	return list
}

func (s serving) sampling() []*Case {
	logits := make([]float64, s.vocab) // of every row
	rng := rand.New(rand.NewPCG(1, uint64(s.vocab)))
	for i := range logits {
		logits[i] = 3 * rng.NormFloat64()
	}
	var list []*Case
	for _, rows := range s.sampled {
		for _, x := range []struct {
			name string
			filters
		}{{"greedy", filters{topP: 1}}, {"top p 0.9", filters{temperature: 0.7, topP: 0.9}}, {"top k 40 top p 0.9", filters{temperature: 0.7, topP: 0.9, topK: 40}}} {
			c := sample(fmt.Sprintf("%d %s rows %d", s.vocab, x.name, rows), rows, s.vocab, func(int) filters { return x.filters })
			c.numbers["Logits"] = logits
			list = append(list, c)
		}
	}
	return list
}
