package nn

import (
	"errors"
	"fmt"
	"slices"
)

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
	var errs []error
	if n := c.LocalExperts; n != nil {
		if c.Experts != ordinary && c.Experts != *n {
			errs = append(errs, fmt.Errorf("num_experts is %d and num_local_experts, its other name, %d", c.Experts, *n))
		}
		c.Experts = *n
	}
	if c.Experts < 1 || c.Experts > 1<<14 {
		errs = append(errs, fmt.Errorf("num_experts is %d (it must be between 1 and %d)", c.Experts, 1<<14))
	}
	if all := int64(c.Experts) * int64(layers); all > mostExperts {
		errs = append(errs, fmt.Errorf("num_experts is %d in %d layers, %d in all (at most %d are served)", c.Experts, layers, all, mostExperts))
	}
	if c.TopK < 1 || c.TopK > min(c.Experts, 64) {
		errs = append(errs, fmt.Errorf("num_experts_per_tok is %d (it must be between 1 and %d)", c.TopK, min(c.Experts, 64)))
	}
	if c.ExpertIntermediate < 1 || c.ExpertIntermediate > 1<<19 {
		errs = append(errs, fmt.Errorf("moe_intermediate_size is %d (it must be between 1 and %d)", c.ExpertIntermediate, 1<<19))
	}
	if c.Shared < 0 || c.Shared > 1<<19 {
		errs = append(errs, fmt.Errorf("shared_expert_intermediate_size is %d (it must be between 0 and %d)", c.Shared, 1<<19))
	}
	if c.SparseStep < 1 {
		errs = append(errs, fmt.Errorf("decoder_sparse_step is %d (it must be at least 1)", c.SparseStep))
	}
	return errors.Join(errs...)
}

// Sparse tells which layers have experts.
func (c *MixtureConfig) Sparse(layer int32) bool {
	return !slices.Contains(c.DenseLayers, layer) && (layer+1)%c.SparseStep == 0
}
