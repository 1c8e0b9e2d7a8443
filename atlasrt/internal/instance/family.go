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

// build makes a model of one config from whatever source it is given.
type build func(ops bundle.Set, src model.Source, limits model.Limits) model.Model

// wholeModel are keys of which every model's settings have some. Families would take all from their class, which is right for none.
var wholeModel = []string{"hidden_size", "num_hidden_layers", "vocab_size"}

// family finds the constructor that a checkpoint's model_type asks for.
func family(c *weights.Config) (build, error) {
	c = c.Text()
	construct, err := byType(c)
	if err == nil && !slices.ContainsFunc(wholeModel, c.Has) {
		err = fmt.Errorf("%s: none of %s is given: these are not the settings of a whole model (one that wraps a text model has them in text_config)",
			c.File(), strings.Join(wholeModel, ", "))
	}
	return construct, err
}

// byType reads the settings as the model_type's family does.
func byType(c *weights.Config) (build, error) {
	kind := c.StringOr("model_type", "")
	data, err := c.JSON()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "llama", "mistral", "qwen2":
		config, err := llama.ReadConfig(c.File(), data, kind)
		note(c, &config.Config)
		return func(ops bundle.Set, src model.Source, limits model.Limits) model.Model {
			return llama.New(ops, src, config, limits)
		}, err
	case "qwen3":
		config, err := qwen3.ReadConfig(c.File(), data)
		note(c, &config.Config)
		return func(ops bundle.Set, src model.Source, limits model.Limits) model.Model {
			return qwen3.New(ops, src, config, limits)
		}, err
	case "qwen3_moe":
		config, err := qwen3moe.ReadConfig(c.File(), data)
		note(c, &config.Config)
		return func(ops bundle.Set, src model.Source, limits model.Limits) model.Model {
			return qwen3moe.New(ops, src, config, limits)
		}, err
	case "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text":
		config, err := qwen3next.ReadConfig(c.File(), data, kind)
		note(c, &config.Config)
		return func(ops bundle.Set, src model.Source, limits model.Limits) model.Model {
			return qwen3next.New(ops, src, config, limits)
		}, err
	}
	return nil, fmt.Errorf("model_type %q is not served (served: llama, mistral, qwen2, qwen3, qwen3_moe, qwen3_next, qwen3_5, qwen3_5_text, qwen3_5_moe, qwen3_5_moe_text)", kind)
}

// note keeps what a family has read of its settings, and what it assumed.
func note(c *weights.Config, read *nn.Config) {
	c.Know(read.Keys()...)
	for _, line := range read.Assumed {
		c.Assume("%s", line)
	}
}
