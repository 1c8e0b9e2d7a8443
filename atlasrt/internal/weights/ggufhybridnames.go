package weights

// hfHybridModules are the modules that hybrid architectures have besides those of hfLayerModules, or under other names.
var hfHybridModules = map[string]string{
	"post_attention_norm": "post_attention_layernorm",
	"attn_gate":           "linear_attn.in_proj_z",
	"ssm_alpha":           "linear_attn.in_proj_a",
	"ssm_beta":            "linear_attn.in_proj_b",
	"ssm_conv1d":          "linear_attn.conv1d",
	"ssm_norm":            "linear_attn.norm",
	"ssm_out":             "linear_attn.out_proj",
	"ffn_gate_shexp":      "mlp.shared_expert.gate_proj",
	"ffn_up_shexp":        "mlp.shared_expert.up_proj",
	"ffn_down_shexp":      "mlp.shared_expert.down_proj",
	"ffn_gate_inp_shexp":  "mlp.shared_expert_gate",
}

// hfPredictionModules are those of layers that predict further tokens which belong to no layer of HuggingFace's.
var hfPredictionModules = map[string]string{
	"nextn.eh_proj":          "fc",
	"nextn.enorm":            "pre_fc_norm_embedding",
	"nextn.hnorm":            "pre_fc_norm_hidden",
	"nextn.shared_head_norm": "norm",
	"nextn.shared_head_head": "lm_head",
	"nextn.embed_tokens":     "embed_tokens",
}

// linearSizes are the sizes of layers with a state.
type linearSizes struct{ keyHeads, valueHeads, keyDim, valueDim int }

// hybrid names a tensor that only hybrid architectures have. It reports whether it is one.
func (n *namer) hybrid(layer, prefix, module, kind string, whole place) (bool, error) {
	s := n.sizes.linear
	values := 0 // elements that belong to one key head
	if s.keyHeads > 0 {
		values = s.valueHeads / s.keyHeads * s.valueDim
	}
	linear := prefix + "linear_attn."
	switch {
	case module == "ssm_a" && kind == "": // -exp(A_log)
		return true, n.add(linear+"A", whole)
	case module == "ssm_dt" && kind == ".bias":
		return true, n.add(linear+"dt_bias", whole)
	case module == "attn_qkv" && n.attends(layer):
		return true, n.attention(prefix, kind, whole)
	case module == "attn_qkv":
		return true, n.add(linear+"in_proj_qkv"+kind, whole)
	case module == "ssm_ba": // b and a of the first key head's values, then those of the next
		each := 0
		if s.keyHeads > 0 {
			each = s.valueHeads / s.keyHeads
		}
		return true, n.split(whole, namedRows{linear + "in_proj_b" + kind, []rows{{0, each, 2 * each}}}, namedRows{linear + "in_proj_a" + kind, []rows{{each, each, 2 * each}}})
	case module == "ssm_in": // q, k, v and z of the first key head, then those of the next
		every := 2*s.keyDim + 2*values
		qkv := []rows{{0, s.keyDim, every}, {s.keyDim, s.keyDim, every}, {2 * s.keyDim, values, every}}
		return true, n.split(whole, namedRows{linear + "in_proj_qkv" + kind, qkv}, namedRows{linear + "in_proj_z" + kind, []rows{{2*s.keyDim + values, values, every}}})
	case hfHybridModules[module] == "":
		return false, nil
	case module == "ssm_conv1d" && len(whole.shape) == 2:
		whole.shape = []int64{whole.shape[0], 1, whole.shape[1]}
	case module == "ffn_gate_inp_shexp" && len(whole.shape) == 1:
		whole.shape = []int64{1, whole.shape[0]}
	}
	return true, n.add(prefix+hfHybridModules[module]+kind, whole)
}

// attends reports whether a layer has attention.
func (n *namer) attends(layer string) bool {
	_, ok := n.file.Tensor("blk." + layer + ".attn_output.weight")
	return ok
}

// attention names the parts of queries with their gates, keys and values that are one tensor.
func (n *namer) attention(prefix, kind string, whole place) error {
	s := n.sizes
	queries, keys := 2*s.queries*s.head, s.keys*s.head
	all := queries + 2*keys
	part := func(name string, first, each int) namedRows {
		return namedRows{prefix + "self_attn." + name + kind, []rows{{first, each, all}}}
	}
	if len(whole.shape) > 0 && whole.shape[0] != int64(all) {
		all = 0 // which split refuses
	}
	return n.split(whole, part("q_proj", 0, queries), part("k_proj", queries, keys), part("v_proj", queries+keys, keys))
}
