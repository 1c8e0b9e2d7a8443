package nn

import (
	"math"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Rotary is a config's rotary position embedding, in any spelling: rope_theta with rope_scaling, or rope_parameters; the part
// of a head that turns as a factor or a number of elements.
type Rotary struct {
	Theta      float64     `json:"rope_theta"`
	Partial    *float64    `json:"partial_rotary_factor"`
	Percent    *float64    `json:"rotary_pct"`
	RotaryDim  *int32      `json:"rotary_dim"`
	Original   *float64    `json:"original_max_position_embeddings"`
	Scaling    *Scaling    `json:"rope_scaling"`
	Parameters *Parameters `json:"rope_parameters"`

	settled Scaling
	kind    string // of settled: a key of scalingKeys
	dims    int32  // elements of a head that turn
}

// Dims is how many elements of a head turn, the first ones.
func (r *Rotary) Dims() int32 { return r.dims }

// Frequencies are the angles per position of Dims/2 pairs, and the factor of cosines and sines.
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

// Rope is placed frequencies.
type Rope struct {
	frequency op.Ptr
	Pairs     int32
	scale     float32
}

// NewRope places the frequencies. A checkpoint that carries factors of its own (GGUF's rope_freqs.weight) divides them.
func NewRope(src model.Source, r *Rotary) Rope {
	frequency, scale := r.Frequencies()
	for i, f := range src.Values("rope_freqs.weight", r.dims/2) {
		frequency[i] /= f
	}
	return Rope{src.Floats(frequency), r.dims / 2, scale}
}

// Angles fills the step's table of cosines and sines.
func (r Rope) Angles(ops op.Attention, q op.Stream, in *model.Inputs, out op.Ptr) {
	ops.RotaryAngles(q, op.RotaryAngles{Out: out, Positions: in.Positions, Frequency: r.frequency, Rows: in.Rows, Axes: 1, Pairs: r.Pairs, Scale: r.scale})
}
