// Package load brings a checkpoint onto a device in the layout of a kernel set.
//
// A family's constructor runs twice. The first time its model.Source is a Counter, which finds missing tensors and how many bytes
// everything takes. The second time it is a Loader, which places the weights. Memory is one arena for weights and one for activations,
// both taken before the first byte is read. Pages of the checkpoint are given back to the system as they are copied.
package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/quant"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// align is what the address of every placed item is a multiple of, in bytes.
const align = 64

func aligned(bytes int64) int64 { return (bytes + align - 1) &^ (align - 1) }

// Counter is a model.Source that only counts and checks. Its addresses lie in no memory, but they differ from each other, and they are zero
// where a Loader's would be.
type Counter struct {
	stored func(name string) (Storage, bool)
	sizes  Sizer

	Weights   int64                // bytes of the weights' arena
	Buffers   int64                // bytes of the activations' arena
	Staging   int64                // bytes of the largest matrix as the checkpoint stores it
	Wants     []weights.Want       // every tensor that the model asked for, once
	kept      map[string]op.Scheme // by tensor; 0: it becomes f32
	converted map[conversion]int   // how many matrices are converted so
	otherwise []problem            // matrices that are stored in another form than the configuration says
	tensors   map[op.Ptr][]string  // names of the tensors at an address
	stacks    map[string]string    // the first tensor of the stack of matrices that a tensor is in
	problems  []problem
}

// Where the arenas would lie.
const (
	weightsAt op.Ptr = 1 << 40
	buffersAt op.Ptr = 1 << 48
)

// conversion is a stored type, and the scheme that its matrices are kept in.
type conversion struct {
	from tensor.Type
	to   op.Scheme
}

func (c conversion) String() string {
	switch {
	case c.to == op.SchemeF8, c.to == op.SchemeNVFP4:
		return fmt.Sprintf("stored as %s are quantised to %s as they are loaded", c.from, c.to)
	case c.to == op.SchemeBF16:
		return fmt.Sprintf("stored as %s are dequantised and rounded once to bf16", c.from)
	case c.from == tensor.Q4_K:
		return fmt.Sprintf("stored as %s are kept as %s, the scale and the minimum of each 32 rounded once to f16", c.from, c.to)
	}
	return fmt.Sprintf("stored as %s are kept as %s, exactly", c.from, c.to)
}

// problem is something that is wrong with one or more tensors.
type problem struct {
	name string // of the first
	what string
	more int
}

// Sizer gives the bytes of a packed matrix, zero where there are no kernels for its scheme. A bundle.Set is one.
type Sizer interface {
	PackedBytes(scheme op.Scheme, rows, cols int32) int64
}

// NewCounter counts for a kernel set. stored tells how a tensor is stored, and whether there is one: see Stored.
func NewCounter(set Sizer, stored func(name string) (Storage, bool)) *Counter {
	return &Counter{stored: stored, sizes: set, kept: map[string]op.Scheme{}, converted: map[conversion]int{}, tensors: map[op.Ptr][]string{}, stacks: map[string]string{}}
}

// Tensors names the tensors that a weight or a vector at an address is made of; of stacked matrices, those of the first. It is nil where
// there are none.
func (c *Counter) Tensors(at op.Ptr) []string { return c.tensors[at] }

// Stack is the first tensor of the stack of matrices that a tensor is in.
func (c *Counter) Stack(name string) string { return c.stacks[name] }

// place takes so many bytes of the weights' arena for parts, and returns their address.
func (c *Counter) place(bytes int64, parts []model.Part) op.Ptr {
	at := weightsAt + op.Ptr(c.Weights)
	c.Weights += aligned(bytes)
	for _, p := range parts {
		c.tensors[at] = append(c.tensors[at], p.Name)
	}
	return at
}

// want notes a tensor and the scheme that it is kept in. It reports whether the tensor is new: two matrices may share one.
func (c *Counter) want(w weights.Want, kept op.Scheme) bool {
	_, known := c.kept[w.Name]
	if !known {
		c.kept[w.Name] = kept
		c.Wants = append(c.Wants, w)
	}
	return !known
}

// Has implements model.Source.
func (c *Counter) Has(name string) bool {
	_, ok := c.stored(name)
	return ok
}

// Storage is how the checkpoint keeps the matrix or vector of a name.
func (c *Counter) Storage(name string) Storage {
	s, _ := c.stored(name)
	return s
}

// Scheme implements model.Source.
func (c *Counter) Scheme(name string) op.Scheme {
	scheme, _ := formOf(c.stored, name)
	return scheme
}

// formOf is how a matrix is kept, and how kernels may round activations before they multiply by it.
func formOf(stored func(name string) (Storage, bool), name string) (op.Scheme, op.Rounding) {
	if s, ok := stored(name); ok && s.problem == "" {
		return s.Scheme, s.Rounding
	}
	return op.SchemeBF16, op.RoundingNone
}

// Matrix implements model.Source.
func (c *Counter) Matrix(cols int32, parts ...model.Part) op.Weight {
	return c.Experts(1, cols, func(int32) []model.Part { return parts })
}

// Experts implements model.Source.
func (c *Counter) Experts(count, cols int32, parts func(e int32) []model.Part) op.Weight {
	first := parts(0)[0].Name
	w := op.Weight{Cols: cols, Count: count}
	w.Scheme, w.Rounding = formOf(c.stored, first)
	w.Rounding = common(c.stored, w.Rounding, count, parts)
	for e := range count {
		w.Rows = 0
		for _, p := range parts(e) {
			if scheme := c.Scheme(p.Name); scheme != w.Scheme && c.Storage(p.Name).problem == "" && c.Storage(first).problem == "" {
				c.fail(p.Name, "is stored as %s, others of the same stack as %s%s", scheme, w.Scheme, c.said(p.Name))
			}
			if w.Scheme == op.SchemeF8Block && w.Rows%op.F8BlockRows != 0 {
				c.fail(p.Name, "comes after rows that are no multiple of %d, which share scales", op.F8BlockRows)
			}
			c.part(p, int64(cols))
			c.stacks[p.Name] = first
			w.Rows += p.Rows
		}
	}
	if int64(cols)%w.Scheme.Block() != 0 {
		c.fail(first, "has %d columns, no multiple of the %d that share a scale in %s", cols, w.Scheme.Block(), w.Scheme)
		return w
	}
	w.Stride = c.sizes.PackedBytes(w.Scheme, w.Rows, cols)
	if w.Stride == 0 {
		c.fail(first, "is stored as %s, for which this hardware has no kernels (it has some for %s: use such a checkpoint)", w.Scheme, c.served())
	}
	w.Stride = aligned(w.Stride)
	w.Data = c.place(w.Stride*int64(count), parts(0))
	if scaled(w.Scheme) {
		w.Scale = c.place(int64(count)*int64(w.Rows)*op.F32.Bytes(), nil)
	}
	c.Staging = max(c.Staging, w.Scheme.RawBytes(int64(w.Rows), int64(cols)))
	return w
}

// said is what the configuration says of a matrix, for an error.
func (c *Counter) said(name string) string {
	if s, _ := c.stored(name); s.Rule.By != "" {
		return fmt.Sprintf(" (its configuration says: %v)", s.Rule)
	}
	return ""
}

// part notes the tensors of a part of a matrix.
func (c *Counter) part(p model.Part, cols int64) {
	s, ok := c.stored(p.Name)
	switch {
	case !ok:
		s = Plain(weights.Info{Name: p.Name, Type: tensor.BF16})
	case s.problem != "":
		c.fail(p.Name, "%s", s.problem)
		c.want(weights.Want{Name: s.Name, Shape: s.Shape}, s.Scheme)
		return
	}
	if what := patternProblem(p, s.Scheme); what != "" {
		c.fail(p.Name, "%s", what)
		return
	}
	rows := storedRows(p)
	codes := weights.Want{Name: s.Name, Shape: []int64{rows, cols}}
	if s.Scheme == op.SchemeNVFP4 && !s.quantises {
		codes.Shape = []int64{rows, cols / 2}
	}
	if c.want(codes, s.Scheme) {
		if s.converts() {
			c.converted[conversion{s.Type, s.Scheme}]++
		}
		if stored, said := s.Form(), s.Rule.Form; ok && said != quant.Unknown && (stored == quant.Plain) != (said == quant.Plain) && stored != quant.Unknown {
			c.otherwise = more(c.otherwise, p.Name, fmt.Sprintf("is stored as %v and said to be %v: what is stored counts", stored, s.Rule))
		}
	}
	if s.blocks.Name != "" {
		blocks := weights.Want{Name: s.blocks.Name, Shape: []int64{rows, cols / 16}}
		if s.Scheme == op.SchemeF8Block {
			blocks.Shape = s.blocks.Shape // it fits the codes, which must fit the part
		}
		c.want(blocks, s.Scheme)
	}
	if s.factor.Name != "" {
		if !ofMatrix(s.factor.Shape) && !ofRows(s.factor.Shape, rows) {
			c.fail(s.factor.Name, "is %s, wanted one scale or one for each of %d rows", tensor.FormatShape(s.factor.Shape), rows)
		}
		c.want(weights.Want{Name: s.factor.Name, Shape: s.factor.Shape}, 0)
	}
}

// Vector implements model.Source.
func (c *Counter) Vector(parts ...model.Part) op.Ptr {
	n := int64(0)
	for _, p := range parts {
		n += int64(p.Rows)
		if what := patternProblem(p, 0); what != "" {
			c.fail(p.Name, "%s", what)
			continue
		}
		c.want(weights.Want{Name: p.Name, Shape: []int64{storedRows(p)}, Plus: p.Plus}, 0)
	}
	return c.place(n*op.F32.Bytes(), parts)
}

// Values implements model.Source.
func (c *Counter) Values(name string, shape ...int32) []float32 {
	want, n := weights.Want{Name: name}, int64(1)
	for _, size := range shape {
		want.Shape = append(want.Shape, int64(size))
		n *= int64(size)
	}
	c.want(want, 0)
	return make([]float32, n)
}

// Floats implements model.Source.
func (c *Counter) Floats(values []float32) op.Ptr {
	return c.place(int64(len(values))*op.F32.Bytes(), nil)
}

// Words implements model.Source.
func (c *Counter) Words(values []int32) op.Ptr {
	return c.place(int64(len(values))*op.I32.Bytes(), nil)
}

// Buffer implements model.Source.
func (c *Counter) Buffer(bytes int64) op.Ptr {
	at := buffersAt + op.Ptr(c.Buffers)
	c.Buffers += aligned(bytes)
	return at
}

// served lists the schemes that the set has kernels for.
func (c *Counter) served() string {
	const whole = 256 // columns that fill the blocks of every scheme
	var names []string
	for s := op.SchemeBF16; s.String() != "unknown"; s++ {
		if c.sizes.PackedBytes(s, whole, whole) > 0 {
			names = append(names, s.String())
		}
	}
	return strings.Join(names, ", ")
}

func (c *Counter) fail(name, format string, args ...any) {
	c.problems = more(c.problems, name, fmt.Sprintf(format, args...))
}

// more notes what is wrong with a tensor.
func more(problems []problem, name, what string) []problem {
	if i := slices.IndexFunc(problems, func(p problem) bool { return p.what == what }); i >= 0 {
		problems[i].more++
		return problems
	}
	return append(problems, problem{name: name, what: what})
}

// lines says what is wrong, in one line for each kind.
func lines(problems []problem) []string {
	var lines []string
	for _, p := range problems[:min(len(problems), maxReported)] {
		if p.more > 0 {
			p.name += fmt.Sprintf(" (and %d more)", p.more)
		}
		lines = append(lines, p.name+" "+p.what)
	}
	return lines
}

// maxReported bounds the lines of an error.
const maxReported = 30

// Err is one error with everything that makes the weights unusable on this hardware; nil where nothing does.
func (c *Counter) Err() error {
	if len(c.problems) == 0 {
		return nil
	}
	return fmt.Errorf("the weights do not fit the kernels: %s", strings.Join(lines(c.problems), "; "))
}

// Otherwise says which matrices are stored in another form than the configuration says, in one line for each such form.
func (c *Counter) Otherwise() []string { return lines(c.otherwise) }

// Kept names the form that a tensor is kept in: the scheme of the matrix that it is a part of, or f32 for vectors and scales.
func (c *Counter) Kept(name string) string {
	if scheme := c.kept[name]; scheme != 0 {
		return scheme.String()
	}
	return op.F32.String()
}

// Converted says which matrices are kept in another form than the checkpoint's, in one line for each stored type.
func (c *Counter) Converted() []string {
	var lines []string
	for what, n := range c.converted {
		lines = append(lines, fmt.Sprintf("%d tensors %s", n, what))
	}
	slices.Sort(lines)
	return lines
}
