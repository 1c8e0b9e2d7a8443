package instance

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Dummy makes up a checkpoint for a config alone, its matrices stored as options say. It has a head that drafts where the config says so.
func Dummy(t *Target, config *weights.Config, options dummy.Options) (*dummy.Checkpoint, error) {
	n, err := networkOf(config)
	if err != nil {
		return nil, err
	}
	construct := n.alone()
	if hasHead(config) {
		if construct, err = n.drafting(nil); err != nil {
			return nil, err
		}
	}
	all := func(name string) (load.Storage, bool) {
		return load.Plain(weights.Info{Name: name, Type: tensor.BF16}), name != "rope_freqs.weight" && name != headPrefix+"lm_head.weight"
	}
	counter := load.NewCounter(t.Set, all)
	construct(t.Set, counter, model.Limits{Rows: 1, Activations: op.F32})
	return dummy.New(config, counter.Wants, options)
}
