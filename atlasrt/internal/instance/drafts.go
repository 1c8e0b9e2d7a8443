package instance

import "github.com/atlas-inference/atlas/atlasrt/internal/engine"

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
