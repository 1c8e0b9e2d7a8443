package workload

// Call is one call of an operation.
type Call struct {
	Op     string
	What   string           // of the model: "qkv"
	Count  int64            // a step makes so many of it
	Scheme string           // of its weight; empty where it has none
	Args   map[string]int64 // integer fields by the names that expressions use: "Rows", "W.Rows"
	Tokens int64            // in the caches that PagedAttention reads, of all sequences
}

// Step is a batch that a model works on: so many sequences, each with so many new rows and so many tokens in all.
type Step struct{ Sequences, RowsEach, Context int64 }

// blockSize is how many tokens a block of the cache holds unless the server is told otherwise.
const blockSize = 16

// Element types and schemes by number belong to the contract; kvBF16 is op.BF16.
const kvBF16 = 2

// plain are schemes whose checkpoints keep embeddings, the output matrix and routers in bf16.
func plain(quant string) string {
	switch quant {
	case "f8", "f8block", "nvfp4":
		return "bf16"
	}
	return quant
}

// Calls lists what a step of the model calls, in the order of the first layer, with matrices in the scheme quant.
func (c *Config) Calls(quant string, s Step) []Call {
	rows, q, kv := s.Sequences*s.RowsEach, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	sparse := c.sparseLayers()
	linear := func(what string, count int64, scheme string, out, in int64) Call {
		return Call{"Linear", what, count, scheme, map[string]int64{"Rows": rows, "OutPitch": out, "W.Rows": out, "W.Cols": in, "W.Count": 1}, 0}
	}
	blocks := (s.Context + blockSize - 1) / blockSize
	cache := map[string]int64{
		"Rows": rows, "Heads": c.Heads, "KVHeads": c.KVHeads, "HeadDim": c.HeadDim, "Blocks": s.Sequences * blocks,
		"BlockSize": blockSize, "KVType": kvBF16,
	}
	with := func(more map[string]int64) map[string]int64 {
		for k, v := range cache {
			more[k] = v
		}
		return more
	}
	calls := []Call{
		{"Embedding", "embedding", 1, plain(quant), map[string]int64{"Rows": rows, "W.Rows": c.Vocab, "W.Cols": c.Hidden, "W.Count": 1}, 0},
		{"RotaryAngles", "angles", 1, "", map[string]int64{"Rows": rows, "Axes": 1, "Pairs": c.HeadDim / 2}, 0},
		{"RMSNorm", "hidden", 2*c.Layers + 1, "", map[string]int64{"Rows": rows, "Cols": c.Hidden}, 0},
		linear("qkv", c.Layers, quant, q+2*kv, c.Hidden),
		{"RotaryCache", "heads", c.Layers, "", with(map[string]int64{"Pairs": c.HeadDim / 2}), 0},
		{"PagedAttention", "attention", c.Layers, "", with(map[string]int64{
			"QPitch": q + 2*kv, "Seqs": s.Sequences, "MaxBlocks": blocks, "Window": 0,
		}), s.Sequences * s.Context},
		linear("output", c.Layers, quant, c.Hidden, q),
	}
	if dense := c.Layers - sparse; dense > 0 {
		calls = append(calls,
			linear("gate and up", dense, quant, 2*c.Intermediate, c.Hidden),
			Call{"SwiGLU", "gate", dense, "", map[string]int64{"Rows": rows, "Cols": c.Intermediate}, 0},
			linear("down", dense, quant, c.Hidden, c.Intermediate))
	}
	if sparse > 0 {
		experts := func(op, what string, out, in int64) Call {
			return Call{op, what, sparse, quant, map[string]int64{"Rows": rows, "TopK": c.TopK, "W.Rows": out, "W.Cols": in, "W.Count": c.Experts}, 0}
		}
		calls = append(calls,
			linear("router", sparse, "bf16", c.Experts, c.Hidden),
			Call{"Route", "experts", sparse, "", map[string]int64{"Rows": rows, "Experts": c.Experts, "TopK": c.TopK, "Normalise": 1}, 0},
			experts("ExpertUp", "experts' gate and up", 2*c.ExpertIntermediate, c.Hidden),
			experts("ExpertDown", "experts' down", c.Hidden, c.ExpertIntermediate))
	}
	return append(calls,
		Call{"Logits", "logits", 1, plain(quant), map[string]int64{"Rows": s.Sequences, "InRows": rows, "W.Rows": c.Vocab, "W.Cols": c.Hidden, "W.Count": 1}, 0},
		Call{"Sample", "sample", 1, "", map[string]int64{"Rows": s.Sequences, "Vocab": c.Vocab, "Edits": 0}, 0})
}
