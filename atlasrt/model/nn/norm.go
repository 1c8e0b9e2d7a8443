package nn

import (
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Norm is an RMSNorm before or after a block.
type Norm struct {
	scale op.Ptr
	cols  int32
	eps   float32
}

// NewNorm places the scale of a norm; name is its tensor's.
func (b *Builder) NewNorm(name string) Norm {
	c := b.config
	return Norm{scale: b.src.Vector(model.Part{Name: name, Rows: c.Hidden, Plus: c.NormOffset}), cols: c.Hidden, eps: c.Eps}
}
