package instance

import (
	"cmp"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Preset is sampling that a publisher recommends for a model; it counts where the checkpoint says nothing.
type Preset struct {
	Name string // "" where there is none
	Defaults
}

// Params are a request's sampling where it says nothing itself: what the checkpoint says, else what the preset says, else the model's
// own distribution. A checkpoint that wants no sampling gets none.
func (t *Text) Params() sample.Params {
	d := t.Defaults
	if d.greedy() {
		return d.Params()
	}
	fill := t.Preset.Defaults
	d.Temperature = cmp.Or(d.Temperature, fill.Temperature)
	d.TopP = cmp.Or(d.TopP, fill.TopP)
	d.TopK = cmp.Or(d.TopK, fill.TopK)
	d.MinP = cmp.Or(d.MinP, fill.MinP)
	d.RepetitionPenalty = cmp.Or(d.RepetitionPenalty, fill.RepetitionPenalty)
	return d.Params()
}

func (d Defaults) greedy() bool { return d.Sample != nil && !*d.Sample }

// Setting is a value of sampling and where it comes from.
type Setting struct{ Name, Value, From string }

// Sampling lists what Params holds.
func (t *Text) Sampling() []Setting {
	preset := "preset " + t.Preset.Name
	p := t.Params()
	var all []Setting
	add := func(name string, value any, stated, recommended bool) {
		from := "default"
		switch {
		case t.Defaults.greedy() && name == "temperature":
			from = t.From + ": do_sample is false"
		case stated:
			from = t.From
		case recommended && !t.Defaults.greedy():
			from = preset
		}
		all = append(all, Setting{name, fmt.Sprint(value), from})
	}
	d, r := t.Defaults, t.Preset
	add("temperature", p.Temperature, d.Temperature != nil, r.Temperature != nil)
	add("top_p", p.TopP, d.TopP != nil, r.TopP != nil)
	add("top_k", p.TopK, d.TopK != nil, r.TopK != nil)
	add("min_p", p.MinP, d.MinP != nil, r.MinP != nil)
	add("repetition_penalty", p.RepetitionPenalty, d.RepetitionPenalty != nil, r.RepetitionPenalty != nil)
	return all
}
