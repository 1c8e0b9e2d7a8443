package nn

import "slices"

// MixtureConfig is the shape of a model's mixtures of experts, by the names of a HuggingFace config.json.
type MixtureConfig struct {
	Experts            int32   `json:"num_experts"`                 // of each layer that has any
	LocalExperts       *int32  `json:"num_local_experts"`           // the newer name of num_experts
	TopK               int32   `json:"num_experts_per_tok"`         // experts that the router chooses for a row
	ExpertIntermediate int32   `json:"moe_intermediate_size"`       // columns of an expert's gate and of its up projection
	Normalise          bool    `json:"norm_topk_prob" null:"false"` // the weights of the chosen experts are divided by their sum
	SparseStep         int32   `json:"decoder_sparse_step"`         // every so many layers one has experts
	DenseLayers        []int32 `json:"mlp_only_layers"`             // layers that have none all the same, counted from 0

	Shared int32 `json:"-"` // columns of the gate and of the up projection of an expert that every row has; 0: there is none
}

// mostExperts bounds the experts of all layers together: each has tensors of its own, which are looked for by name.
const mostExperts = 1 << 17

// Complete settles the number of experts, which is ordinary where the file says nothing, and checks every number that sizes depend on.
func (c *MixtureConfig) Complete(ordinary, layers int32) error {
	var r ranges
	key := "num_experts"
	if n := c.LocalExperts; n != nil {
		if c.Experts != ordinary && c.Experts != *n {
			r.fail("num_experts is %d and num_local_experts, its other name, %d", c.Experts, *n)
		}
		c.Experts, key = *n, "num_local_experts"
	}
	r.within(key, c.Experts, 1, 1<<14)
	if c.Experts > 0 {
		r.within("num_experts_per_tok", c.TopK, 1, min(c.Experts, 64))
	}
	if all := int64(c.Experts) * int64(layers); all > mostExperts {
		r.fail("%s is %d in %d layers, %d in all (at most %d are served)", key, c.Experts, layers, all, mostExperts)
	}
	r.within("moe_intermediate_size", c.ExpertIntermediate, 1, 1<<19)
	r.within("shared_expert_intermediate_size", c.Shared, 0, 1<<19)
	if c.SparseStep < 1 {
		r.fail("decoder_sparse_step is %d (it must be at least 1)", c.SparseStep)
	}
	slices.Sort(c.DenseLayers)
	c.DenseLayers = slices.Compact(c.DenseLayers)
	if n := len(c.DenseLayers); n > 0 && layers > 0 {
		for _, layer := range slices.Compact([]int32{c.DenseLayers[0], c.DenseLayers[n-1]}) {
			if layer < 0 || layer >= layers {
				r.fail("mlp_only_layers has layer %d (it must be between 0 and %d)", layer, layers-1)
			}
		}
	}
	return r.err()
}

// Sparse tells which layers have experts.
func (c *MixtureConfig) Sparse(layer int32) bool {
	return !slices.Contains(c.DenseLayers, layer) && (layer+1)%c.SparseStep == 0
}
