package nn

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Rotary is a config's rotary position embedding, in every spelling that published files have: rope_theta with rope_scaling, or
// rope_parameters. Where only a part of each head is rotated, its size is a share of the head or a number of elements.
type Rotary struct {
	Theta      float64     `json:"rope_theta"`                       // base of the frequencies
	Partial    *float64    `json:"partial_rotary_factor"`            // share of a head that is rotated
	Percent    *float64    `json:"rotary_pct"`                       // the same, by its older name
	RotaryDim  *int32      `json:"rotary_dim"`                       // the same, in elements
	Original   *float64    `json:"original_max_position_embeddings"` // the context that the model was first trained with, in tokens
	Scaling    *Scaling    `json:"rope_scaling"`                     // transformers before 5
	Parameters *Parameters `json:"rope_parameters"`                  // transformers 5

	Ordinary float64 `json:"-"` // share of a head that is rotated where the file says nothing; 0: all

	settled Scaling // what Complete made of Scaling or Parameters
	kind    string  // type of settled: a key of scalingKeys
	dims    int32   // elements of a head that are rotated
}

// Dims is how many elements of a head are rotated: the first ones.
func (r *Rotary) Dims() int32 { return r.dims }

// Frequencies are the angles per position, in radians, of Dims/2 pairs of elements, and the factor of cosines and sines.
// Sources: Su et al. 2021; Peng et al. 2023 (YaRN), https://arxiv.org/abs/2309.00071.
func (r *Rotary) Frequencies() (frequency []float32, scale float32) {
	s := &r.settled
	frequency = make([]float32, r.dims/2)
	for i := range frequency {
		w := math.Pow(r.Theta, -float64(2*i)/float64(r.dims))
		switch r.kind {
		case "linear":
			w /= *s.Factor
		case "llama3":
			w = s.llama3(w)
		case "yarn":
			w = s.yarn(w, i, r.dims, r.Theta)
		}
		frequency[i] = float32(w)
	}
	return frequency, float32(r.scale())
}

// Rope is the frequencies on the device, and the table that a step makes of them.
type Rope struct {
	frequency op.Ptr
	angles    op.Ptr // f32 [Rows,2·pairs]: cosines and sines of the step's positions
	pairs     int32  // of elements that are rotated in each head
	scale     float32
}

// NewRope places the frequencies. Those of a checkpoint that has factors (GGUF's rope_freqs.weight) are divided by them.
func NewRope(src model.Source, r *Rotary, limits model.Limits) *Rope {
	frequency, scale := r.Frequencies()
	if factors := "rope_freqs.weight"; src.Has(factors) {
		for i, f := range src.Values(factors, r.dims/2) {
			frequency[i] /= f
		}
	}
	return &Rope{src.Floats(frequency), src.Buffer(int64(limits.Rows) * int64(r.dims) * op.F32.Bytes()), r.dims / 2, scale}
}

// Forward fills the step's table of cosines and sines.
func (r *Rope) Forward(ops op.Attention, q op.Stream, in *model.Inputs) {
	ops.RotaryAngles(q, op.RotaryAngles{Out: r.angles, Positions: in.Positions, Frequency: r.frequency, Rows: in.Rows, Axes: 1, Pairs: r.pairs, Scale: r.scale})
}
