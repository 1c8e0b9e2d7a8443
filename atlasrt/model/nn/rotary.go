package nn

import (
	"fmt"
	"math"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Rotary is a config's rotary position embedding, in either spelling: rope_theta with rope_scaling, or rope_parameters.
type Rotary struct {
	Theta      float64  `json:"rope_theta"`
	Scaling    *Scaling `json:"rope_scaling"`
	Parameters *Scaling `json:"rope_parameters"`
}

// Scaling stretches rotary frequencies for contexts longer than those of the first training.
type Scaling struct {
	Type             string  `json:"rope_type"`
	OldType          string  `json:"type"`
	Theta            float64 `json:"rope_theta"`
	Factor           float64 `json:"factor"`
	LowFrequency     float64 `json:"low_freq_factor"`
	HighFrequency    float64 `json:"high_freq_factor"`
	OriginalPosition float64 `json:"original_max_position_embeddings"`
	BetaFast         float64 `json:"beta_fast"`
	BetaSlow         float64 `json:"beta_slow"`
	AttentionFactor  float64 `json:"attention_factor"`
}

// complete brings both spellings into one and checks it.
func (r *Rotary) complete(headDim int32) error {
	if r.Parameters != nil {
		r.Scaling = r.Parameters
	}
	if r.Scaling == nil {
		r.Scaling = &Scaling{}
	}
	s := r.Scaling
	if s.Theta != 0 {
		r.Theta = s.Theta
	}
	if s.Type == "" {
		s.Type = s.OldType
	}
	if r.Theta == 0 {
		r.Theta = 10000 // the default of transformers
	}
	if !(r.Theta > 1 && r.Theta < 1e12) {
		return fmt.Errorf("rope_theta is %v (it must be between 1 and 1e12)", r.Theta)
	}
	factor := func() error {
		if !(s.Factor >= 1 && s.Factor <= 1e4) {
			return fmt.Errorf("the factor of %s rope scaling is %v (it must be between 1 and 10000)", s.Type, s.Factor)
		}
		return nil
	}
	switch s.Type {
	case "", "default":
		s.Type = "default"
		return nil
	case "linear":
		return factor()
	case "llama3":
		if !(s.LowFrequency > 0 && s.HighFrequency > s.LowFrequency && s.OriginalPosition > 0) {
			return fmt.Errorf("llama3 rope scaling needs 0 < low_freq_factor %v < high_freq_factor %v and original_max_position_embeddings %v above 0",
				s.LowFrequency, s.HighFrequency, s.OriginalPosition)
		}
		return factor()
	case "yarn":
		if s.BetaFast == 0 {
			s.BetaFast = 32
		}
		if s.BetaSlow == 0 {
			s.BetaSlow = 1
		}
		if !(s.OriginalPosition > 0 && s.BetaFast > s.BetaSlow && s.BetaSlow > 0) {
			return fmt.Errorf("yarn rope scaling needs original_max_position_embeddings %v above 0 and beta_fast %v above beta_slow %v",
				s.OriginalPosition, s.BetaFast, s.BetaSlow)
		}
		return factor()
	}
	return fmt.Errorf("rope scaling %q is not known (known: default, linear, llama3, yarn)", s.Type)
}

// Frequencies are the angles per position of dims/2 pairs, and the factor of cosines and sines.
// Sources: Su et al. 2021; Peng et al. 2023 (YaRN), https://arxiv.org/abs/2309.00071.
func (r *Rotary) Frequencies(dims int32) (frequency []float32, scale float32) {
	s := r.Scaling
	scale = 1
	frequency = make([]float32, dims/2)
	for i := range frequency {
		w := math.Pow(r.Theta, -float64(2*i)/float64(dims))
		switch s.Type {
		case "linear":
			w /= s.Factor
		case "llama3":
			w = s.llama3(w)
		case "yarn":
			w = s.yarn(w, i, dims, r.Theta)
		}
		frequency[i] = float32(w)
	}
	if s.Type == "yarn" {
		scale = float32(0.1*math.Log(s.Factor) + 1)
		if s.AttentionFactor != 0 {
			scale = float32(s.AttentionFactor)
		}
	}
	return frequency, scale
}

// llama3 keeps short waves, stretches long ones, and blends between.
func (s *Scaling) llama3(w float64) float64 {
	wave := 2 * math.Pi / w
	switch {
	case wave < s.OriginalPosition/s.HighFrequency:
		return w
	case wave > s.OriginalPosition/s.LowFrequency:
		return w / s.Factor
	}
	blend := (s.OriginalPosition/wave - s.LowFrequency) / (s.HighFrequency - s.LowFrequency)
	return (1-blend)*w/s.Factor + blend*w
}

// yarn stretches the pairs that turn less than BetaSlow times in the original context and keeps those that turn more
// than BetaFast times.
func (s *Scaling) yarn(w float64, pair int, dims int32, theta float64) float64 {
	d := float64(dims)
	turns := func(beta float64) float64 {
		return d * math.Log(s.OriginalPosition/(2*math.Pi*beta)) / (2 * math.Log(theta))
	}
	low := max(math.Floor(turns(s.BetaFast)), 0)
	high := min(math.Ceil(turns(s.BetaSlow)), d-1)
	if high == low {
		high += 0.001
	}
	ramp := min(max((float64(pair)-low)/(high-low), 0), 1)
	return w*(1-ramp) + w/s.Factor*ramp
}

// Rope is placed frequencies.
type Rope struct {
	frequency op.Ptr
	Pairs     int32
	scale     float32
}

// NewRope places the frequencies for heads whose first dims elements turn. A checkpoint that carries factors of its
// own (GGUF's rope_freqs.weight) divides them.
func NewRope(src model.Source, r *Rotary, dims int32) Rope {
	frequency, scale := r.Frequencies(dims)
	for i, f := range src.Values("rope_freqs.weight", dims/2) {
		frequency[i] /= f
	}
	return Rope{src.Floats(frequency), dims / 2, scale}
}

// Angles fills the step's table of cosines and sines.
func (r Rope) Angles(ops op.Attention, q op.Stream, in *model.Inputs, out op.Ptr) {
	ops.RotaryAngles(q, op.RotaryAngles{Out: out, Positions: in.Positions, Frequency: r.frequency, Rows: in.Rows, Axes: 1, Pairs: r.Pairs, Scale: r.scale})
}
