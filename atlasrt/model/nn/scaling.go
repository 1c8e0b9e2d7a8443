package nn

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Scaling lowers rotary frequencies, so that a model serves contexts longer than those it was first trained with. Which fields count
// depends on the type: see scalingKeys. A nil field is one that the file does not give.
type Scaling struct {
	Type        *string  `json:"rope_type"`             // default, linear, dynamic, llama3 or yarn
	OldType     *string  `json:"type"`                  // the same, by its older name
	Theta       *float64 `json:"rope_theta"`            // in place of Rotary.Theta
	Partial     *float64 `json:"partial_rotary_factor"` // in place of Rotary.Partial
	Mrope       []int32  `json:"mrope_section"`         // pairs for time, height and width, whose positions are equal in text
	Interleaved *bool    `json:"mrope_interleaved"`     // pairs of time, height and width take turns, which text does not show

	Factor           *float64 `json:"factor"`                           // how much longer contexts are
	LowFrequency     *float64 `json:"low_freq_factor"`                  // llama3: pairs that turn less often in the first context are stretched in full
	HighFrequency    *float64 `json:"high_freq_factor"`                 // llama3: pairs that turn more often are not stretched
	OriginalPosition *float64 `json:"original_max_position_embeddings"` // the first context, in tokens
	BetaFast         *float64 `json:"beta_fast"`                        // yarn: as HighFrequency
	BetaSlow         *float64 `json:"beta_slow"`                        // yarn: as LowFrequency
	AttentionFactor  *float64 `json:"attention_factor"`                 // yarn: of cosines and sines; nil: it follows from Factor
	Mscale           *float64 `json:"mscale"`                           // yarn: with MscaleAllDim, where AttentionFactor is not given
	MscaleAllDim     *float64 `json:"mscale_all_dim"`                   // see Mscale
	Truncate         *bool    `json:"truncate" null:"false"`            // yarn: pairs where stretching begins and ends are rounded to whole ones
	Extrapolation    *float64 `json:"extrapolation_factor"`             // yarn: share of the unstretched frequency that is kept
}

// Parameters is rope_parameters of transformers 5: a Scaling, or one for each kind of layer.
type Parameters struct {
	Scaling
	Full    *Scaling `json:"full_attention"`    // of layers without a window
	Sliding *Scaling `json:"sliding_attention"` // of layers with one
}

// always are the keys that every type of scaling uses.
const always = "rope_type type rope_theta partial_rotary_factor mrope_section mrope_interleaved"

// scalingKeys are the further keys that each type of scaling uses.
var scalingKeys = map[string]string{
	"default": "",
	"dynamic": "factor original_max_position_embeddings", // the factor counts beyond the original context only
	"linear":  "factor",
	"llama3":  "factor low_freq_factor high_freq_factor original_max_position_embeddings",
	"yarn":    "factor original_max_position_embeddings beta_fast beta_slow attention_factor mscale mscale_all_dim truncate extrapolation_factor",
}

// scaling finds the object that is in force: rope_scaling where it is not empty, else rope_parameters.
func (c *Config) scaling() (s *Scaling, name string, err error) {
	p := c.Rotary.Parameters
	if s := c.Rotary.Scaling; s != nil && !reflect.ValueOf(*s).IsZero() {
		if p != nil {
			c.assume("rope_scaling and rope_parameters are both given: rope_scaling counts")
		}
		return s, "rope_scaling.", nil
	}
	switch {
	case p == nil:
		return &Scaling{}, "rope_scaling.", nil
	case p.Full != nil && p.Sliding != nil && !reflect.DeepEqual(p.Full, p.Sliding):
		return nil, "", errors.New("rope_parameters differ between full_attention and sliding_attention, which is not served")
	case p.Full != nil:
		return p.Full, "rope_parameters.full_attention.", nil
	case p.Sliding != nil:
		return p.Sliding, "rope_parameters.sliding_attention.", nil
	}
	return &p.Scaling, "rope_parameters.", nil
}

// completeRotary decides on type, base, dimensions and scaling, and checks them.
func (c *Config) completeRotary() error {
	r := &c.Rotary
	s, object, err := c.scaling()
	if err != nil {
		return err
	}
	r.settled = *s
	if s.Theta != nil {
		r.Theta = *s.Theta
	}
	if !(r.Theta > 1 && r.Theta < 1e12) {
		return fmt.Errorf("rope_theta is %v (it must be between 1 and 1e12)", r.Theta)
	}
	if err := c.completeDims(s.Partial); err != nil {
		return err
	}
	r.kind = "default"
	for _, kind := range []*string{s.OldType, s.Type} {
		if kind != nil && *kind != "" {
			r.kind = *kind
		}
	}
	switch r.kind {
	case "none":
		r.kind = "default"
	case "mrope":
		c.assume("rope scaling \"mrope\" turns text as \"default\" does")
		r.kind = "default"
	case "dynamic":
		c.MaxPositions = int32(max(min(r.original(s, c.MaxPositions), float64(c.MaxPositions)), 1))
		c.assume("rope scaling \"dynamic\" stretches nothing up to %d positions, and no more are served", c.MaxPositions)
	}
	used, ok := scalingKeys[r.kind]
	if !ok {
		return fmt.Errorf("rope scaling %q is not served (served: default, linear, dynamic, llama3, yarn)", r.kind)
	}
	if r.kind == "default" && s.Factor != nil && *s.Factor != 1 {
		c.assume("%sfactor is %v, but the type of scaling uses none: nothing is stretched", object, *s.Factor)
	}
	if !strings.Contains(used, "original") {
		c.ignored = append(c.ignored, "original_max_position_embeddings")
	}
	for key := range fields(reflect.TypeFor[Scaling]()) {
		if !slices.Contains(strings.Fields(always+" "+used), key) {
			c.ignored = append(c.ignored, object+key)
		}
	}
	if r.kind == "default" || r.kind == "dynamic" {
		return nil
	}
	return c.completeScaling(object)
}

// completeDims decides how many elements of a head are rotated. inside is the share that the object of the scaling gives.
func (c *Config) completeDims(inside *float64) error {
	r := &c.Rotary
	partial := inside
	for _, other := range []*float64{r.Partial, r.Percent} {
		if partial == nil {
			partial = other
		}
	}
	ordinary := c.HeadDim
	if r.Ordinary > 0 {
		ordinary = int32(r.Ordinary * float64(c.HeadDim))
	}
	r.dims = ordinary
	if partial != nil {
		r.dims = int32(min(max(*partial, 0), 2) * float64(c.HeadDim)) // cut, as transformers does
	}
	if d := r.RotaryDim; d != nil {
		if partial != nil && r.dims != *d {
			return fmt.Errorf("rotary_dim is %d, but the partial rotary factor of %v makes %d of heads of %d turn", *d, *partial, r.dims, c.HeadDim)
		}
		r.dims = *d
	}
	if r.dims < 2 || r.dims > c.HeadDim || r.dims%2 != 0 {
		return fmt.Errorf("%d elements of heads of %d turn (it must be an even number from 2 to head_dim: see partial_rotary_factor)", r.dims, c.HeadDim)
	}
	if r.dims < ordinary {
		c.assume("the first %d of %d elements of a head turn", r.dims, c.HeadDim)
	}
	return nil
}

// CheckSections checks that the pairs of time, height and width are all that turn.
func (r *Rotary) CheckSections() error {
	sections := r.settled.Mrope
	if len(sections) == 0 {
		return nil
	}
	sum := int64(0)
	for _, pairs := range sections {
		sum += int64(pairs)
	}
	if len(sections) != 3 || slices.Min(sections) < 0 || sum != int64(r.dims/2) {
		return fmt.Errorf("mrope_section is %v (it must be three numbers whose sum is %d, the pairs that turn)", sections, r.dims/2)
	}
	return nil
}

// original is the context that the model was first trained with, in tokens. A key beside the object outweighs the one inside.
func (r *Rotary) original(s *Scaling, longest int32) float64 {
	for _, n := range []*float64{r.Original, s.OriginalPosition} {
		if n != nil {
			return *n
		}
	}
	return float64(longest)
}

// completeScaling fills what a scaling leaves out and checks its numbers.
func (c *Config) completeScaling(object string) error {
	r, s := &c.Rotary, &c.Rotary.settled
	fill := func(field **float64, value float64) {
		if *field == nil || **field == 0 {
			*field = &value
		}
	}
	if strings.Contains(scalingKeys[r.kind], "original") {
		original := r.original(s, c.MaxPositions)
		if r.Original == nil && s.OriginalPosition == nil {
			c.assume("%soriginal_max_position_embeddings is not given: max_position_embeddings, %d, stands for it", object, c.MaxPositions)
		}
		s.OriginalPosition = &original
		if !(original >= 1 && original <= 1<<27) {
			return fmt.Errorf("original_max_position_embeddings of %s rope scaling is %v (it must be between 1 and %d)", r.kind, original, 1<<27)
		}
	}
	switch r.kind {
	case "llama3":
		if s.LowFrequency == nil || s.HighFrequency == nil || !(*s.LowFrequency > 0 && *s.HighFrequency > *s.LowFrequency) {
			return fmt.Errorf("llama3 rope scaling needs low_freq_factor above 0 and high_freq_factor above that (they are %s and %s)",
				given(s.LowFrequency), given(s.HighFrequency))
		}
	case "yarn":
		fill(&s.BetaFast, 32)
		fill(&s.BetaSlow, 1)
		if s.Extrapolation == nil {
			fill(&s.Extrapolation, 1)
		}
		if s.Factor == nil {
			factor := float64(c.MaxPositions) / *s.OriginalPosition
			c.assume("%sfactor is not given: %v, the ratio of the contexts, stands for it", object, factor)
			s.Factor = &factor
		}
		if !(*s.BetaSlow > 0 && *s.BetaFast > *s.BetaSlow) {
			return fmt.Errorf("yarn rope scaling has beta_fast %v and beta_slow %v (beta_slow must be above 0 and beta_fast above that)", *s.BetaFast, *s.BetaSlow)
		}
		if a := s.AttentionFactor; a != nil && !(*a > 0 && *a <= 100) {
			return fmt.Errorf("attention_factor of yarn rope scaling is %v (it must be above 0 and at most 100)", *a)
		}
		if !(*s.Extrapolation >= 0 && *s.Extrapolation <= 1) {
			return fmt.Errorf("extrapolation_factor of yarn rope scaling is %v (it must be between 0 and 1)", *s.Extrapolation)
		}
	}
	if s.Factor == nil || !(*s.Factor > 0 && *s.Factor <= 1e4) {
		return fmt.Errorf("the factor of %s rope scaling is %s (it must be above 0 and at most 10000)", r.kind, given(s.Factor))
	}
	if scale := r.scale(); !(scale > 0 && scale <= 100) {
		return fmt.Errorf("%s rope scaling multiplies cosines and sines by %v (it must be above 0 and at most 100: see mscale)", r.kind, scale)
	}
	return nil
}

func given(value *float64) string {
	if value == nil {
		return "not given"
	}
	return fmt.Sprint(*value)
}

// scale is what cosines and sines are multiplied by.
func (r *Rotary) scale() float64 {
	s := &r.settled
	if r.kind != "yarn" {
		return 1
	}
	magnitude := func(m float64) float64 {
		if *s.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(*s.Factor) + 1
	}
	switch {
	case s.AttentionFactor != nil:
		return *s.AttentionFactor
	case s.Mscale != nil && s.MscaleAllDim != nil && *s.Mscale != 0 && *s.MscaleAllDim != 0:
		return magnitude(*s.Mscale) / magnitude(*s.MscaleAllDim)
	}
	return magnitude(1)
}

// llama3 is one frequency as Llama 3.1 scales it: short wavelengths stay, long ones are stretched by Factor, and between the two bounds
// both are blended. w is in radians per position.
func (s *Scaling) llama3(w float64) float64 {
	wave := 2 * math.Pi / w
	switch {
	case wave < *s.OriginalPosition / *s.HighFrequency:
		return w
	case wave > *s.OriginalPosition / *s.LowFrequency:
		return w / *s.Factor
	}
	blend := (*s.OriginalPosition/wave - *s.LowFrequency) / (*s.HighFrequency - *s.LowFrequency)
	return (1-blend)*w / *s.Factor + blend*w
}

// yarn is the frequency of one pair as YaRN scales it (section 3.2 of the paper). A pair that turns less than BetaSlow times in the
// original context is stretched, one that turns more than BetaFast times stays, and between them both are blended by the pair's number.
func (s *Scaling) yarn(w float64, pair int, dims int32, theta float64) float64 {
	d := float64(dims)
	turns := func(beta float64) float64 {
		return d * math.Log(*s.OriginalPosition/(2*math.Pi*beta)) / (2 * math.Log(theta))
	}
	low, high := turns(*s.BetaFast), turns(*s.BetaSlow)
	if s.Truncate == nil || *s.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, d-1)
	if high == low {
		high += 0.001
	}
	kept := (1 - min(max((float64(pair)-low)/(high-low), 0), 1)) * *s.Extrapolation
	return w*kept + w / *s.Factor * (1-kept)
}
