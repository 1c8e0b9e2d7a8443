package instance

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/model"
)

// speculative is a model that may have a drafter of its own.
type speculative interface {
	Drafter() model.Drafter // nil where the checkpoint has none, or Limits.Drafts is 0
}

// drafts is the drafter of a model; nil where none is asked for.
func (p *Prepared) drafts(m model.Model) (model.Drafter, error) {
	if p.Sizes.Drafts == 0 {
		return nil, nil
	}
	if s, ok := m.(speculative); ok {
		if d := s.Drafter(); d != nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%s: there is no drafting head in the checkpoint, or none that is served for model_type %q (leave --speculative out)",
		p.Checkpoint, p.Checkpoint.Config().Text().StringOr("model_type", ""))
}

// DraftShare is what drafts take of a plan, line by line, beside what a model without them does.
func (p *Prepared) DraftShare(m engine.Memory) (engine.Memory, error) {
	if p.Sizes.Drafts == 0 {
		return engine.Memory{}, nil
	}
	sizes := p.Sizes
	sizes.Drafts = 0
	without, err := Prepare(p.Target, p.Checkpoint, sizes)
	if err != nil {
		return engine.Memory{}, err
	}
	plain, err := without.Plan()
	if err != nil {
		return engine.Memory{}, err
	}
	share := engine.Memory{
		Weights: m.Weights - plain.Weights, Activations: m.Activations - plain.Activations, Scratch: m.Scratch - plain.Scratch, Inputs: m.Inputs - plain.Inputs,
		Logits: m.Logits - plain.Logits, Cache: int64(m.Blocks) * (m.BlockBytes - plain.BlockBytes), States: m.States - plain.States,
	}
	share.Total = share.Weights + share.Activations + share.Scratch + share.Inputs + share.Logits + share.Cache + share.States
	return share, nil
}
