// Package dummy makes up a checkpoint from a list of tensors, to measure and to test without downloading a model.
//
// Invariants: a tensor's bytes depend on its name, type and shape only, and any program can compute them. They are units
// of a pattern that its type and columns choose: unit i of a tensor is unit (h+i) mod 262139 of the pattern, where h is
// the 64-bit FNV-1a hash of the name. Unit v of a pattern is made from words nv … nv+n-1, n being 1 where nothing else is
// said, and word j is output j of SplitMix64 whose state starts as 0:
// z = (j+1)·0x9e3779b97f4a7c15; z = (z ^ z>>30)·0xbf58476d1ce4e5b9; z = (z ^ z>>27)·0x94d049bb133111eb; z ^ z>>31.
//
//   - BF16, F16 and F32: four elements. Element i: u is bits 16·i and up, 16 of them;
//     x = float32(2u − 65535)·float32(a/65536), rounded once. a is √(3/columns) for two dimensions or more, which keeps
//     the size of what passes through, else 1/16. A vector whose name holds "norm" is 1 + x in float32.
//   - U8 (packed codes): the word's bytes, lowest first. F8_E4M3: the same, bit 6 cleared, which leaves magnitudes below 2;
//     where the name ends in "scale", 0x30 and the low four bits of each, which are numbers from 0.5 to 1.875.
//   - Q8_0: a block. 32 codes from words 0…3 of n=5, 0x80 becoming 0x81. Q4_0 and Q4_1: a block. 16 bytes of codes from
//     words 0 and 1 of n=3, where of Q4_0 nibbles of 0 become 8. The next word's low 16 bits u give
//     d = float16(float32(98304 + u)·float32(k/131072)) with k = 1/(74·√columns), 1/(4.2·√columns) in Q4_0 or
//     1/(4.6·√columns) in Q4_1, whose minimum is float16(−7.5·d).
//   - Q5_0, Q4_K and Q6_K: a block. What is not f16 in it is as many bytes of words 0 and on of n=4, 19 or 27, where of Q5_0
//     the high bit of a code of 0 is set, and d comes from the last word as above with k = 1/(8.8·√columns), 1/(259·√columns)
//     or 1/(1367·√columns); Q4_K's scale of minimums is float16(7.5·d).
//   - The scale of a whole matrix, or of blocks of F8_E4M3, has no pattern: it is float32(1/(k·√columns)) of the matrix with
//     k = 0.6 for F8_E4M3 and 3.4 for packed codes.
//
// Columns of a matrix "…o_proj.weight", and of its scales, count 64 times in all of these. Random queries and keys have every row of
// a prompt attend to all others alike; what that adds to each of them is the same, and at full size would leave
// no difference between them after some layers. No code's values have a mean other than zero for the same reason.
//
// Tensors are made when they are asked for, in memory that Release gives back.
package dummy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Options says what to make.
type Options struct {
	// Scheme is how matrices are stored: bf16 (also when zero), GGUF's blocks, or as published FP8 and NVFP4 checkpoints do,
	// where only the projections of layers are quantised. Routers, and matrices whose columns fill no blocks, are bf16.
	Scheme op.Scheme
	// Better is how matrices are stored to which mixtures such as llama.cpp's Q4_K_M give more bits: the head, and the values and the
	// last projections of half of the layers. Zero: as the others.
	Better op.Scheme
	// Assets is what the checkpoint's Assets gives.
	Assets weights.Assets
	// Text makes the checkpoint's Assets a tokenizer of bytes, a chat template and an end token instead.
	Text bool
}

type checkpoint struct {
	config  *weights.Config
	assets  weights.Assets
	text    bool
	recipes map[string]recipe
	bytes   int64
	stored  string
	tracker weights.Tracker

	mutex    sync.Mutex
	patterns map[pattern][]byte
	free     [][]byte
}

// mixtures are what options have names of their own.
var mixtures = map[string]Options{
	"q4_k_m": {Scheme: op.SchemeQ4_K, Better: op.SchemeQ6_K},
}

// Parse finds how matrices are stored by the name of a scheme or of a mixture.
func Parse(name string) (Options, error) {
	if mixed, ok := mixtures[name]; ok {
		return mixed, nil
	}
	scheme, err := op.ParseScheme(name)
	return Options{Scheme: scheme}, err
}

// String is the name that Parse knows.
func (o Options) String() string {
	for name, mixed := range mixtures {
		if mixed.Scheme == o.Scheme && mixed.Better == o.Better {
			return name
		}
	}
	return o.Scheme.String()
}

// of is how a tensor's matrix is stored in a model of so many layers.
func (o Options) of(name string, layers int) op.Scheme {
	if o.Better != 0 && better(name, layers) {
		return o.Better
	}
	return o.Scheme
}

// better reports whether a mixture gives a tensor more bits: the head, and of the first and the last eighth of the layers and each third
// between them the values and what leads back from the inner dimension. It is llama.cpp's rule.
func better(name string, layers int) bool {
	if name == "lm_head.weight" {
		return true
	}
	if !strings.Contains(name, ".v_proj.") && !strings.Contains(name, ".down_proj.") {
		return false
	}
	_, rest, _ := strings.Cut(name, ".layers.")
	number, _, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	return err == nil && (i < layers/8 || i >= 7*layers/8 || (i-layers/8)%3 == 2)
}

// New makes a checkpoint that holds every tensor of wants, optional ones too. It fails when a tensor has no type that can
// be made, or a size that cannot be.
func New(config *weights.Config, wants []weights.Want, options Options) (weights.Checkpoint, error) {
	if options.Scheme == 0 {
		options.Scheme = op.SchemeBF16
	}
	c := &checkpoint{
		config: config, assets: options.Assets, text: options.Text, stored: options.String(), recipes: map[string]recipe{}, patterns: map[pattern][]byte{},
	}
	layers := config.Fresh().IntOr("num_hidden_layers", 0)
	for _, want := range wants {
		for _, r := range choose(want, options.of(want.Name, layers)) {
			if unit[r.Type] == 0 {
				return nil, fmt.Errorf("dummy weights: %v: no values are made up for this type", r.Info)
			}
			bytes, err := r.Type.Bytes(r.Shape)
			if err != nil {
				return nil, fmt.Errorf("dummy weights: %v: %w", r.Info, err)
			}
			if _, ok := c.recipes[r.Name]; ok {
				return nil, fmt.Errorf("dummy weights: %s is listed twice", r.Name)
			}
			c.recipes[r.Name] = r
			c.bytes += bytes
		}
	}
	return c, nil
}

// choose picks how a tensor is stored: as the scheme says if the want allows it, else as the want's first type.
func choose(want weights.Want, scheme op.Scheme) []recipe {
	plain := func(t weights.Type) []recipe {
		return []recipe{{Info: weights.Info{Name: want.Name, Type: t, Shape: want.Shape}}}
	}
	switch {
	case len(want.Types) > 0:
		return plain(want.Types[0])
	case len(want.Shape) < 2:
		return plain(tensor.F32)
	}
	cols := want.Shape[len(want.Shape)-1]
	blocks := map[op.Scheme]weights.Type{
		op.SchemeQ8_0: tensor.Q8_0, op.SchemeQ4_0: tensor.Q4_0, op.SchemeQ4_1: tensor.Q4_1,
		op.SchemeQ5_0: tensor.Q5_0, op.SchemeQ4_K: tensor.Q4_K, op.SchemeQ6_K: tensor.Q6_K,
	}
	if t, ok := blocks[scheme]; ok && cols%scheme.Block() == 0 && !strings.HasSuffix(want.Name, ".mlp.gate.weight") {
		return plain(t)
	}
	linear, ok := strings.CutSuffix(want.Name, "_proj.weight")
	if !ok || len(want.Shape) != 2 || cols <= 0 || cols%scheme.Block() != 0 {
		return plain(tensor.BF16)
	}
	rows, linear := want.Shape[0], linear+"_proj.weight"
	tensorOf := func(suffix string, t weights.Type, shape ...int64) recipe {
		return recipe{Info: weights.Info{Name: linear + suffix, Type: t, Shape: shape}}
	}
	scaleOf := func(suffix string, k float64, shape ...int64) recipe {
		r := tensorOf(suffix, tensor.F32, shape...)
		r.constant = scale(k, spread(linear, cols))
		return r
	}
	switch scheme {
	case op.SchemeF8:
		return []recipe{tensorOf("", tensor.F8_E4M3, rows, cols), scaleOf("_scale", spreadF8)}
	case op.SchemeF8Block:
		return []recipe{tensorOf("", tensor.F8_E4M3, rows, cols), scaleOf("_scale_inv", spreadF8, (rows+127)/128, (cols+127)/128)}
	case op.SchemeNVFP4:
		return []recipe{tensorOf("", tensor.U8, rows, cols/2), tensorOf("_scale", tensor.F8_E4M3, rows, cols/16), scaleOf("_scale_2", spreadFP4)}
	}
	return plain(tensor.BF16)
}

func (c *checkpoint) Config() *weights.Config { return c.config.Fresh() }

func (c *checkpoint) Info(name string) (weights.Info, bool) {
	r, ok := c.recipes[name]
	return r.Info, ok
}

func (c *checkpoint) Tensor(name string) (weights.Tensor, error) {
	r, ok := c.recipes[name]
	if !ok {
		return weights.Tensor{}, fmt.Errorf("%s: %w", name, weights.ErrMissing)
	}
	c.tracker.Mark(name)
	size, err := r.Type.Bytes(r.Shape)
	if err != nil {
		return weights.Tensor{}, fmt.Errorf("dummy weights: %v: %w", r.Info, err)
	}
	data := c.take(size)
	r.fill(data, c.pattern(r))
	return weights.Tensor{Info: r.Info, Data: data}, nil
}

// maxFree bounds the buffers that wait for another tensor.
const maxFree = 4

// take finds memory: the smallest free buffer that is large enough, or a new one.
func (c *checkpoint) take(size int64) []byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	i := slices.IndexFunc(c.free, func(b []byte) bool { return int64(cap(b)) >= size })
	if i < 0 {
		return make([]byte, size)
	}
	data := c.free[i][:size]
	c.free = slices.Delete(c.free, i, i+1)
	return data
}

// Release keeps the memory for another tensor; of too many buffers the largest stay.
func (c *checkpoint) Release(t weights.Tensor) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at, _ := slices.BinarySearchFunc(c.free, cap(t.Data), func(b []byte, size int) int { return cap(b) - size })
	c.free = slices.Insert(c.free, at, t.Data)
	c.free = slices.Delete(c.free, 0, max(len(c.free)-maxFree, 0))
}

// Notes implements weights.Checkpoint: nothing is assumed of made-up weights.
func (c *checkpoint) Notes() []string { return nil }

func (c *checkpoint) Unused() []string {
	names := make([]string, 0, len(c.recipes))
	for name := range c.recipes {
		names = append(names, name)
	}
	return c.tracker.Unused(names)
}

func (c *checkpoint) Assets() (weights.Assets, error) {
	if c.text {
		config := c.config.Fresh()
		vocabulary := config.IntOr("vocab_size", 0)
		if err := config.Err(); err != nil {
			return weights.Assets{}, err
		}
		return text(vocabulary)
	}
	return c.assets, nil
}

func (c *checkpoint) Close() error { return nil }

func (c *checkpoint) String() string {
	return fmt.Sprintf("made-up weights, %d tensors, matrices %s, %s", len(c.recipes), c.stored, weights.FormatBytes(c.bytes))
}
