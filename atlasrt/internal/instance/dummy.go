package instance

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Dummy makes up a checkpoint for a config alone, its matrices stored as options say. FP8 comes with the activations of
// published checkpoints where the config does not say.
func Dummy(t *Target, config *weights.Config, options dummy.Options) (weights.Checkpoint, error) {
	construct, err := family(config)
	if err != nil {
		return nil, err
	}
	all := func(name string) (load.Storage, bool) {
		return load.Plain(weights.Info{Name: name, Type: tensor.BF16}), name != "rope_freqs.weight"
	}
	counter := load.NewCounter(t.Set, all)
	construct(t.Set, counter, model.Limits{Rows: 1, Activations: op.F32})
	if scheme := options.Scheme; (scheme == op.SchemeF8 || scheme == op.SchemeF8Block) && !config.Has("quantization_config") {
		if config, err = dynamic(config); err != nil {
			return nil, err
		}
	}
	return dummy.New(config, counter.Wants, options)
}

// dynamic is a config whose activations are meant to be rounded where they meet FP8 weights.
func dynamic(config *weights.Config) (*weights.Config, error) {
	text, err := config.JSON()
	if err != nil {
		return nil, err
	}
	const says = `{"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}, `
	return weights.ParseConfig("made-up config.json", append([]byte(says), text[1:]...))
}
