// Package load brings a checkpoint onto a device in the layout of a kernel set.
//
// A family's constructor runs twice over the same table of weights: over a Counter, which finds what is missing and
// how many bytes all of it takes, and over a Loader, which places it. Memory is one arena for weights and one for
// activations, taken whole before the first byte is read. The checkpoint's pages are given back as they are copied.
package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// align is what every placed item starts at a multiple of.
const align = 64

func aligned(bytes int64) int64 { return (bytes + align - 1) &^ (align - 1) }

// SchemeOf is how a stored type is kept on the device. Types without kernels of their own become bf16.
func SchemeOf(t tensor.Type) op.Scheme {
	switch t {
	case tensor.Q8_0:
		return op.SchemeQ8_0
	case tensor.Q4_0:
		return op.SchemeQ4_0
	case tensor.Q4_1:
		return op.SchemeQ4_1
	}
	return op.SchemeBF16
}

// Counter is a model.Source that only counts and checks.
type Counter struct {
	// Types tells how a tensor is stored. A checkpoint's Info, or the type that dummy weights will have.
	types func(name string) (tensor.Type, bool)
	sizes Sizer

	Weights int64 // bytes of the weights' arena
	Buffers int64 // bytes of the activations' arena
	Staging int64 // bytes of the largest matrix as the checkpoint stores it
	Wants   []weights.Want
	wanted  map[string]bool
	errs    []string
}

// Sizer gives the size of a packed matrix, zero where there are no kernels for it; a bundle.Set is one.
type Sizer interface {
	PackedBytes(scheme op.Scheme, rows, cols int32) int64
}

// NewCounter counts for a kernel set. types tells how a tensor is stored, and whether there is one.
func NewCounter(set Sizer, types func(name string) (tensor.Type, bool)) *Counter {
	return &Counter{types: types, sizes: set, wanted: map[string]bool{}}
}

// Stored makes a types function of a checkpoint.
func Stored(c weights.Checkpoint) func(string) (tensor.Type, bool) {
	return func(name string) (tensor.Type, bool) {
		info, ok := c.Info(name)
		return info.Type, ok
	}
}

// want notes a tensor; the second of a pair that must share it is no second want.
func (c *Counter) want(name string, optional bool, shape ...int64) {
	if !c.wanted[name] {
		c.wanted[name] = true
		c.Wants = append(c.Wants, weights.Want{Name: name, Shape: shape, Optional: optional})
	}
}

// Scheme implements model.Source.
func (c *Counter) Scheme(name string) op.Scheme {
	t, ok := c.types(name)
	if !ok {
		return op.SchemeBF16
	}
	return SchemeOf(t)
}

// Matrix implements model.Source.
func (c *Counter) Matrix(cols int32, parts ...model.Part) op.Weight {
	return c.Experts(1, cols, func(int32) []model.Part { return parts })
}

// Experts implements model.Source.
func (c *Counter) Experts(count, cols int32, parts func(e int32) []model.Part) op.Weight {
	w := op.Weight{Cols: cols, Count: count}
	for e := range count {
		rows := int32(0)
		for _, p := range parts(e) {
			scheme := c.Scheme(p.Name)
			if w.Scheme != 0 && scheme != w.Scheme {
				c.fail("%s is stored as %s, others of the same stack as %s", p.Name, scheme, w.Scheme)
			}
			w.Scheme = scheme
			c.want(p.Name, false, int64(p.Rows), int64(cols))
			rows += p.Rows
		}
		w.Rows = rows
	}
	if int64(cols)%w.Scheme.Block() != 0 {
		c.fail("%s has %d columns, no multiple of the %d that share a scale in %s", parts(0)[0].Name, cols, w.Scheme.Block(), w.Scheme)
		return w
	}
	w.Stride = c.sizes.PackedBytes(w.Scheme, w.Rows, cols)
	if w.Stride == 0 {
		c.fail("%s is stored as %s, for which this hardware has no kernels", parts(0)[0].Name, w.Scheme)
	}
	w.Stride = aligned(w.Stride)
	c.Weights += w.Stride * int64(count)
	c.Staging = max(c.Staging, w.Scheme.RawBytes(int64(w.Rows), int64(cols)))
	return w
}

// Vector implements model.Source.
func (c *Counter) Vector(parts ...model.Part) op.Ptr {
	n := int64(0)
	for _, p := range parts {
		c.want(p.Name, false, int64(p.Rows))
		n += int64(p.Rows)
	}
	c.Weights += aligned(n * op.F32.Bytes())
	return 0
}

// Values implements model.Source. A counting pass reads nothing.
func (c *Counter) Values(name string, n int32) []float32 {
	if _, ok := c.types(name); ok {
		c.want(name, true, int64(n))
	}
	return nil
}

// Floats implements model.Source.
func (c *Counter) Floats(values []float32) op.Ptr {
	c.Weights += aligned(int64(len(values)) * op.F32.Bytes())
	return 0
}

// Buffer implements model.Source.
func (c *Counter) Buffer(bytes int64) op.Ptr {
	c.Buffers += aligned(bytes)
	return 0
}

func (c *Counter) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Sprintf(format, args...))
}

// Err tells all that makes the weights unusable on this hardware, in one error.
func (c *Counter) Err() error {
	if len(c.errs) == 0 {
		return nil
	}
	return fmt.Errorf("the weights do not fit the kernels: %s", strings.Join(c.errs, "; "))
}

// Converted says, one line per stored type, which matrices are kept in another type than the checkpoint's.
func (c *Counter) Converted() []string {
	count := map[tensor.Type]int{}
	for _, w := range c.Wants {
		if t, ok := c.types(w.Name); ok && len(w.Shape) > 1 && t != tensor.BF16 && SchemeOf(t) == op.SchemeBF16 {
			count[t]++
		}
	}
	var lines []string
	for t, n := range count {
		lines = append(lines, fmt.Sprintf("%d tensors stored as %s are dequantised and rounded once to bf16", n, t))
	}
	slices.Sort(lines)
	return lines
}
