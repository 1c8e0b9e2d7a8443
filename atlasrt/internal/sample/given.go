package sample

// Given is the sampling that a request or a file asks for.
type Given struct {
	// Fields are those of Params. Nil means that nothing was said, so that the default holds.
	Temperature, TopP, MinP, TopNSigma, MinEntropy       *float32
	Adaptive                                             *bool // false: MinEntropy is 0; true: AdaptiveEntropy, where it is 0
	XTCProbability, XTCThreshold                         *float32
	RepetitionPenalty, FrequencyPenalty, PresencePenalty *float32
	Window                                               *int32 // 0: nothing is penalised, whatever the penalties are
	DRYMultiplier, DRYBase                               *float32
	DRYAllowedLength, DRYRange                           *int32
	LZPenalty                                            *float32
	TopK                                                 *int32
	Seed                                                 *int64
	LogitBias                                            map[int32]float32 // replaces the default as a whole
	BadWords                                             [][]int32         // this one, too
	Allowed                                              []int32           // this one, too
}

// Over is the defaults, with what was given in their place. Values may be out of range: see Params.Validate.
func (g *Given) Over(defaults Params) Params {
	p := defaults
	set(&p.Temperature, g.Temperature)
	set(&p.TopP, g.TopP)
	set(&p.MinP, g.MinP)
	set(&p.TopNSigma, g.TopNSigma)
	switch set(&p.MinEntropy, g.MinEntropy); {
	case g.Adaptive == nil:
	case !*g.Adaptive:
		p.MinEntropy = 0
	case p.MinEntropy == 0:
		p.MinEntropy = AdaptiveEntropy
	}
	set(&p.XTCProbability, g.XTCProbability)
	set(&p.XTCThreshold, g.XTCThreshold)
	set(&p.RepetitionPenalty, g.RepetitionPenalty)
	set(&p.FrequencyPenalty, g.FrequencyPenalty)
	set(&p.PresencePenalty, g.PresencePenalty)
	if set(&p.Window, g.Window); g.Window != nil && *g.Window == 0 {
		p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty = 1, 0, 0
	}
	set(&p.DRY.Multiplier, g.DRYMultiplier)
	set(&p.DRY.Base, g.DRYBase)
	set(&p.DRY.AllowedLength, g.DRYAllowedLength)
	set(&p.DRY.Range, g.DRYRange)
	set(&p.LZPenalty, g.LZPenalty)
	set(&p.TopK, g.TopK)
	set(&p.Seed, g.Seed)
	if g.LogitBias != nil {
		p.LogitBias = g.LogitBias
	}
	if g.BadWords != nil {
		p.BadWords = g.BadWords
	}
	if g.Allowed != nil {
		p.Allowed = g.Allowed
	}
	return p
}

func set[T any](field *T, given *T) {
	if given != nil {
		*field = *given
	}
}
