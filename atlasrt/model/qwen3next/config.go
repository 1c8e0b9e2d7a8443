package qwen3next

import (
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/model/nn"
)

// Config is the config.json of a hybrid: what those with experts and those without have in common.
type Config struct {
	nn.Config
	nn.DeltaNetConfig
	Interval      int32 `json:"full_attention_interval"`      // every so many layers one is attention, where layer_types is not given
	AttentionGate bool  `json:"attn_output_gate" null:"true"` // always true in this family
	UnitOffset    bool  `json:"norm_unit_offset"`             // 1 is added to the weights of norms, but for those in a delta net

	HeadLayers    *int32 `json:"mtp_num_hidden_layers"`                     // of the head that drafts, in Qwen3.5 and its successors
	NextLayers    *int32 `json:"num_nextn_predict_layers"`                  // the same in Qwen3-Next
	OwnEmbeddings bool   `json:"mtp_use_dedicated_embeddings" null:"false"` // the head has an embedding and an output matrix of its own

	mixture *nn.MixtureConfig // nil: there are no experts
}

// sparseConfig is the config.json of a hybrid with experts.
type sparseConfig struct {
	Config
	nn.MixtureConfig
	SharedIntermediate int32 `json:"shared_expert_intermediate_size"` // columns of the gate and of the up projection of the expert that every row has

	ordinary int32 // num_experts where the file says nothing
}

// ReadConfig reads and checks a config.json of a model type; file names it in errors. What it may leave out is as in Qwen3NextConfig,
// Qwen3_5TextConfig and Qwen3_5MoeTextConfig of transformers 5.24 (src/transformers/models/*/configuration_*.py).
func ReadConfig(file string, data []byte, modelType string) (*Config, error) {
	c := defaults()
	switch modelType {
	case "qwen3_5", "qwen3_5_text":
		c.Hidden, c.Layers, c.KVHeads, c.Intermediate, c.Vocab = 4096, 32, 4, 12288, 248320
		return nn.Read(file, data, &c)
	case "qwen3_next":
		c.Hidden, c.Layers, c.KVHeads, c.Intermediate, c.Vocab = 2048, 48, 2, 5632, 151936
		c.Grouped = true
		return readSparse(file, data, c, nn.MixtureConfig{Experts: 512, TopK: 10, ExpertIntermediate: 512, Normalise: true, SparseStep: 1})
	}
	c.Hidden, c.Layers, c.KVHeads, c.Vocab = 2048, 40, 2, 248320
	c.Intermediate = 512 // which no layer has
	return readSparse(file, data, c, nn.MixtureConfig{Experts: 256, TopK: 8, ExpertIntermediate: 512, Normalise: true, SparseStep: 1})
}

// defaults are what all configs may leave out alike.
func defaults() Config {
	return Config{
		Config: nn.Config{
			Heads: 16, HeadDim: 256, MaxPositions: 32768, Eps: 1e-6, Activation: "silu",
			Rotary: nn.Rotary{Theta: 10000, Ordinary: 0.25}, Windows: nn.NoWindows, Linear: true,
			Inherent: map[string]string{"use_qk_norm": "true"},
		},
		DeltaNetConfig: nn.DeltaNetConfig{KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128, Width: 4},
		Interval:       4, AttentionGate: true, UnitOffset: true,
	}
}

func readSparse(file string, data []byte, c Config, m nn.MixtureConfig) (*Config, error) {
	s, err := nn.Read(file, data, &sparseConfig{Config: c, MixtureConfig: m, SharedIntermediate: 512, ordinary: m.Experts})
	return &s.Config, err
}

// Complete fills what a config may leave out and checks it.
func (c *Config) Complete() error {
	var errs []error
	if !c.AttentionGate {
		errs = append(errs, errors.New("attn_output_gate is false, which this family does not serve (true is)"))
	}
	switch {
	case c.Interval < 1:
		errs = append(errs, fmt.Errorf("full_attention_interval is %d (it must be at least 1)", c.Interval))
	case len(c.LayerTypes) == 0:
		for i := range max(0, min(c.Layers, nn.MostLayers)) { // more are refused
			kind := nn.LinearAttention
			if (i+1)%c.Interval == 0 {
				kind = nn.FullAttention
			}
			c.LayerTypes = append(c.LayerTypes, kind)
		}
	}
	if c.UnitOffset {
		c.NormOffset = 1
	}
	if kept := c.StateType; kept != "" && kept != "float32" {
		c.Assumed = append(c.Assumed, fmt.Sprintf("mamba_ssm_dtype is %q: states are kept in float32 all the same", kept))
	}
	errs = append(errs, c.DeltaNetConfig.Complete(), c.Config.Complete())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.CheckSections()
}

// Complete fills what a config may leave out and checks it.
func (c *sparseConfig) Complete() error {
	c.MixtureConfig.Shared = c.SharedIntermediate
	c.mixture = &c.MixtureConfig
	if !c.Normalise && c.ModelType != "qwen3_next" {
		c.Assumed = append(c.Assumed, fmt.Sprintf("norm_topk_prob is false, but model_type %s divides the weights of experts by their sum whatever it says", c.ModelType))
		c.Normalise = true
	}
	return errors.Join(c.MixtureConfig.Complete(c.ordinary, c.Layers), c.Config.Complete())
}

// Head is how many layers the settings give the head that drafts. Where they say nothing, it has one if there is a head.
func (c *Config) Head() int32 {
	for _, n := range []*int32{c.HeadLayers, c.NextLayers} {
		if n != nil {
			return *n
		}
	}
	return 1
}

// CheckHead says why a model cannot draft with its head.
func (c *Config) CheckHead() error {
	switch {
	case c.HeadLayers != nil && c.NextLayers != nil && *c.HeadLayers != *c.NextLayers:
		return fmt.Errorf("mtp_num_hidden_layers is %d and num_nextn_predict_layers %d, but they are two names of one thing: the layers of the MTP head, which drafts",
			*c.HeadLayers, *c.NextLayers)
	case c.Head() == 0:
		return errors.New("the settings say that the model has no MTP head, which drafts (mtp_num_hidden_layers or num_nextn_predict_layers is 0)")
	case c.Head() != 1:
		return fmt.Errorf("the settings give the model's MTP head %d layers, and one with 1 is served", c.Head())
	case c.OwnEmbeddings:
		return errors.New("mtp_use_dedicated_embeddings is true, and a head that shares the model's embedding is served")
	}
	return nil
}

// recurrent tells which layers are delta nets.
func (c *Config) recurrent(layer int32) bool { return c.LayerTypes[layer] == nn.LinearAttention }
