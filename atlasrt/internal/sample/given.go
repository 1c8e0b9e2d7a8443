package sample

// Given is the sampling that a request or a file asks for.
type Given struct {
	// Fields are those of Params. Nil means that nothing was said, so that the default holds.
	Temperature, TopP, MinP                              *float32
	RepetitionPenalty, FrequencyPenalty, PresencePenalty *float32
	TopK                                                 *int32
	Seed                                                 *int64
	LogitBias                                            map[int32]float32 // replaces the default as a whole
}

// Over is the defaults, with what was given in their place. Values may be out of range: see Params.Validate.
func (g *Given) Over(defaults Params) Params {
	p := defaults
	set(&p.Temperature, g.Temperature)
	set(&p.TopP, g.TopP)
	set(&p.MinP, g.MinP)
	set(&p.RepetitionPenalty, g.RepetitionPenalty)
	set(&p.FrequencyPenalty, g.FrequencyPenalty)
	set(&p.PresencePenalty, g.PresencePenalty)
	set(&p.TopK, g.TopK)
	set(&p.Seed, g.Seed)
	if g.LogitBias != nil {
		p.LogitBias = g.LogitBias
	}
	return p
}

func set[T any](field *T, given *T) {
	if given != nil {
		*field = *given
	}
}

// Penalises tells whether a penalty changes the logits of tokens that were seen before.
func (p *Params) Penalises() bool {
	return p.RepetitionPenalty != 1 || p.FrequencyPenalty != 0 || p.PresencePenalty != 0
}
