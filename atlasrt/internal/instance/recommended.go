package instance

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// layer is what one source says about sampling.
type layer struct {
	Defaults
	from string
}

// layers are the sources of sampling, what counts most first: whoever runs the model, the checkpoint, the publisher. A checkpoint that wants
// no sampling gets none by its publisher.
func (t *Text) layers() (all []layer) {
	for _, f := range t.Facts {
		if f.Operator {
			all = append(all, layer{f.Sampling, f.From})
		}
	}
	d := t.Defaults
	if d.greedy() {
		d.Temperature = nil
		return append(all, layer{Defaults{Temperature: new(float32(0))}, t.From + ": do_sample is false"}, layer{d, t.From})
	}
	all = append(all, layer{d, t.From})
	for _, f := range t.Facts {
		if !f.Operator {
			all = append(all, layer{f.Sampling, f.From})
		}
	}
	return all
}

// plainLayers are the sources of sampling for answers without thoughts: what is said of them, and then what is said of all. The second
// result tells whether anything is said of them.
func (t *Text) plainLayers() (all []layer, differ bool) {
	for _, f := range t.Facts {
		if f.Operator || !t.Defaults.greedy() {
			all = append(all, layer{f.Plain, f.From})
			differ = differ || f.Plain != Defaults{} && f.Plain != f.Sampling // flags say the same of both
		}
	}
	return append(all, t.layers()...), differ
}

// Params are a request's sampling where it says nothing itself: the model's own distribution where nobody else does.
func (t *Text) Params() sample.Params {
	p, _ := settle(t.layers())
	return p
}

// Plain is Params of answers without thoughts; nil where they are sampled like others.
func (t *Text) Plain() *sample.Params {
	layers, differ := t.plainLayers()
	if !differ {
		return nil
	}
	p, _ := settle(layers)
	return &p
}

func (d Defaults) greedy() bool { return d.Sample != nil && !*d.Sample }

// Sampling lists what Params holds.
func (t *Text) Sampling() []Setting {
	_, settings := settle(t.layers())
	return settings
}

// PlainSampling lists what Plain holds; nothing where that is nil.
func (t *Text) PlainSampling() []Setting {
	layers, differ := t.plainLayers()
	if !differ {
		return nil
	}
	_, settings := settle(layers)
	return settings
}

// settle takes each value from the first layer that has it.
func settle(layers []layer) (sample.Params, []Setting) {
	var d Defaults
	from := []string{
		first(&d, layers, func(d *Defaults) **float32 { return &d.Temperature }),
		first(&d, layers, func(d *Defaults) **float32 { return &d.TopP }),
		first(&d, layers, func(d *Defaults) **int32 { return &d.TopK }),
		first(&d, layers, func(d *Defaults) **float32 { return &d.MinP }),
		first(&d, layers, func(d *Defaults) **float32 { return &d.RepetitionPenalty }),
		first(&d, layers, func(d *Defaults) **float32 { return &d.PresencePenalty }),
		first(&d, layers, func(d *Defaults) **float32 { return &d.TopNSigma }),
		first(&d, layers, func(d *Defaults) **float32 { return &d.MinEntropy }),
	}
	p := d.Params()
	values := []Setting{
		{Name: "temperature", Value: fmt.Sprint(p.Temperature)}, {Name: "top_p", Value: fmt.Sprint(p.TopP)}, {Name: "top_k", Value: fmt.Sprint(p.TopK)},
		{Name: "min_p", Value: fmt.Sprint(p.MinP)}, {Name: "repetition_penalty", Value: fmt.Sprint(p.RepetitionPenalty)}, {Name: "presence_penalty", Value: fmt.Sprint(p.PresencePenalty)},
		{Name: "top_n_sigma", Value: fmt.Sprint(p.TopNSigma)}, {Name: "adaptive_entropy", Value: fmt.Sprint(p.MinEntropy)},
	}
	for i := range values {
		values[i].From = from[i]
	}
	return p, values
}

func first[T any](d *Defaults, layers []layer, at func(*Defaults) **T) (from string) {
	for i := range layers {
		if value := *at(&layers[i].Defaults); value != nil {
			*at(d) = value
			return layers[i].from
		}
	}
	return "default"
}
