package instance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/llama"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3moe"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3next"
)

// families are all that is served, in the order in which errors name them.
var families = []family{
	serves(llama.ReadConfig, llama.New, "llama", "mistral", "qwen2"),
	serves(qwen3.ReadConfig, qwen3.New, "qwen3"),
	serves(qwen3moe.ReadConfig, qwen3moe.New, "qwen3_moe"),
	drafts(qwen3next.ReadConfig, qwen3next.New, qwen3next.NewDrafting, "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
}

// family reads the settings of some model types.
type family struct {
	types []string // values of model_type
	read  func(file string, data []byte, modelType string) (network, error)
}

// network is a model's settings, read and checked by its family, and what makes the model of them.
type network struct {
	file, modelType string     // that errors name
	common          *nn.Config // what the settings of all families have
	build           build
	head            *head // nil: the family has no head that drafts
}

// build makes a model from whatever source it is given.
type build func(ops bundle.Set, src model.Source, limits model.Limits) model.Model

// serves is a family: how its settings are read, and what constructs a model of them.
func serves[C nn.Family](
	read func(file string, data []byte, modelType string) (C, error), construct func(nn.Ops, model.Source, C, model.Limits) model.Model, types ...string,
) family {
	return family{types, func(file string, data []byte, modelType string) (network, error) {
		config, err := read(file, data, modelType)
		return newNetwork(file, modelType, config, construct), err
	}}
}

func newNetwork[C nn.Family](file, modelType string, config C, construct func(nn.Ops, model.Source, C, model.Limits) model.Model) network {
	return network{file: file, modelType: modelType, common: config.Common(), build: func(ops bundle.Set, src model.Source, limits model.Limits) model.Model {
		return construct(ops, src, config, limits)
	}}
}

// wholeModel are keys of which every model's settings have some. Families would take all from their class, which is right for none.
var wholeModel = []string{"hidden_size", "num_hidden_layers", "vocab_size"}

// networkOf reads a checkpoint's settings as the family of their model_type does, and notes in c what that has read and what it assumed.
func networkOf(c *weights.Config) (network, error) {
	c = c.Text()
	modelType := c.StringOr("model_type", "")
	data, err := c.JSON()
	if err != nil {
		return network{}, err
	}
	var served []string
	for _, f := range families {
		if !slices.Contains(f.types, modelType) {
			served = append(served, f.types...)
			continue
		}
		n, err := f.read(c.File(), data, modelType)
		c.Know(n.common.Keys()...)
		for _, line := range n.common.Assumed {
			c.Assume("%s", line)
		}
		if err == nil && !slices.ContainsFunc(wholeModel, c.Has) {
			err = fmt.Errorf("%s: none of %s is given: these are not the settings of a whole model (one that wraps a text model has them in text_config)",
				c.File(), strings.Join(wholeModel, ", "))
		}
		return n, err
	}
	return network{}, fmt.Errorf("model_type %q is not served (served: %s)", modelType, strings.Join(served, ", "))
}
