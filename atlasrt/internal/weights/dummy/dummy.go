// Package dummy makes up a checkpoint from a list of tensors, to measure and to test without downloading a model.
//
// Invariants: a tensor's bytes depend on its name, type and shape only, and any program can compute them. They are a stretch of a
// repeating pattern of 262139 units, which depends on the type and the columns: unit i of a tensor is unit (h+i) mod 262139 of the
// pattern, where h is the 64-bit FNV-1a hash of the name. Unit v of a pattern is made of n random words, numbers n·v to n·v+n-1; n is 1
// unless the list says otherwise. Word j is output j of SplitMix64 whose state starts as 0:
// z = (j+1)·0x9e3779b97f4a7c15; z = (z ^ z>>30)·0xbf58476d1ce4e5b9; z = (z ^ z>>27)·0x94d049bb133111eb; z ^ z>>31.
//
//   - BF16, F16 and F32: four elements. Element i: u is bits 16·i and up, 16 of them;
//     x = float32(2u − 65535)·float32(a/65536), rounded once. a is √(3/columns) for two dimensions or more, so that a product has
//     the size of its input, else 1/16. A vector whose name holds "norm" is 1 + x in float32, or x where 1 is added when it is
//     loaded. One whose name ends in "A_log" is 16·x, and one whose name ends in "dt_bias" is 32·x − 4: see below.
//   - U8 (packed codes): the word's bytes, lowest first. F8_E4M3: the same with bit 6 cleared, which leaves magnitudes below 2;
//     where the name ends in "scale", 0x30 and the low four bits of each byte, which are numbers from 0.5 to 1.875.
//   - Q8_0: a unit is a block, n=5. Words 0…3 are the 32 codes, with 0x81 in place of 0x80. Q4_0 and Q4_1: a unit is a block, n=3.
//     Words 0 and 1 are the 16 bytes of codes; in Q4_0 nibbles of 0 become 8. The last word's low 16 bits u give
//     d = float16(float32(98304 + u)·float32(k/131072)) with k = 1/(74·√columns), 1/(4.2·√columns) in Q4_0 or
//     1/(4.6·√columns) in Q4_1, whose minimum is float16(−7.5·d).
//   - Q5_0, Q4_K and Q6_K: a unit is a block, n=4, 19 or 27. The bytes that are no f16 number are those of the first words; in Q5_0
//     the high bit of every code of 0 is set. The last word gives d as above with k = 1/(8.8·√columns), 1/(259·√columns)
//     or 1/(1367·√columns); Q4_K's scale of minimums is float16(7.5·d).
//   - The scale of a whole matrix, or of blocks of F8_E4M3, has no pattern: it is float32(1/(k·√columns)) of the matrix with
//     k = 0.6 for F8_E4M3 and 3.4 for packed codes.
//
// For a matrix "…o_proj.weight" or "…out_proj.weight" and its scales, columns means 64 times as many, so that values are an eighth of the
// size. With random queries and keys, every row of a prompt attends to all others alike, and attention adds the same vector to each. At full
// size that vector would make all rows equal after some layers, and routers would send them to the same experts. The mean of every code's
// values is zero for the same reason.
//
// Delta nets forget by exp(−exp(A_log)·ln(1 + e^(a+dt_bias))) for each row, of which a has the size of the input, about 1. With exp(A_log)
// from 0.37 to 2.7 and dt_bias from −6 to −2, heads remember some ten to some thousand rows. What they write is bounded by what they read:
// keys have a length of 1, and the size of values is kept by the convolution, whose four columns count as above. So states neither vanish
// nor overflow in prompts of any length.
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
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Options says what to make.
type Options struct {
	// Scheme is how matrices are stored; zero is bf16. In FP8 and NVFP4 only the projections of layers are quantised, as in published
	// checkpoints. Routers, and matrices whose columns do not fill blocks, are bf16.
	Scheme op.Scheme
	// Better is the scheme of the matrices to which mixtures such as llama.cpp's Q4_K_M give more bits: the head, and in half of the
	// layers the projection of values and the down projection. Zero: they have Scheme as well.
	Better op.Scheme
	// Assets is what the checkpoint's Assets gives.
	Assets weights.Assets
	// Text makes the checkpoint's Assets a tokenizer of bytes, a chat template and an end token instead.
	Text bool
	// Whole says that matrices which published checkpoints keep in bf16 have Scheme too, where that is FP8 or NVFP4: the head, and the
	// projections of the gates of delta nets. Embeddings and routers are bf16 all the same.
	Whole bool
	// Dialect names the tensors of NVFP4.
	Dialect Dialect
}

// Checkpoint is a made-up checkpoint.
type Checkpoint struct {
	config  *weights.Config // as config.json has it
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

// mixtures are the options that have a name of their own.
var mixtures = map[string]Options{
	"q4_k_m":    {Scheme: op.SchemeQ4_K, Better: op.SchemeQ6_K},
	"nvfp4_all": {Scheme: op.SchemeNVFP4, Whole: true},
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
		if mixed.Scheme == o.Scheme && mixed.Better == o.Better && mixed.Whole == o.Whole {
			return name
		}
	}
	return o.Scheme.String()
}

// of is the scheme of a tensor's matrix in a model of so many layers.
func (o Options) of(name string, layers int) op.Scheme {
	if o.Better != 0 && better(name, layers) {
		return o.Better
	}
	return o.Scheme
}

// better reports whether a mixture gives a tensor more bits. The head has them, and in some layers the projection of values and the down
// projection: in the first and the last eighth of the layers, and in every third one between them. It is llama.cpp's rule.
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

// New makes a checkpoint that holds every tensor of wants. Settings that say nothing of quantisation say then how matrices are stored, with
// the activations of published checkpoints. It fails when a tensor has no type that can be made, or a size that cannot be.
func New(config *weights.Config, wants []weights.Want, options Options) (*Checkpoint, error) {
	if options.Scheme == 0 {
		options.Scheme = op.SchemeBF16
	}
	config, err := options.describe(config)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{
		config: config, assets: options.Assets, text: options.Text, stored: options.String(), recipes: map[string]recipe{}, patterns: map[pattern][]byte{},
	}
	layers := config.Fresh().Text().IntOr("num_hidden_layers", 0)
	for _, want := range wants {
		for _, r := range options.choose(want, options.of(want.Name, layers)) {
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

// Config implements weights.Checkpoint.
func (c *Checkpoint) Config() *weights.Config { return c.config.Fresh().Text() }

// Info implements weights.Checkpoint.
func (c *Checkpoint) Info(name string) (weights.Info, bool) {
	r, ok := c.recipes[name]
	return r.Info, ok
}

// Tensor implements weights.Checkpoint: it makes the tensor.
func (c *Checkpoint) Tensor(name string) (weights.Tensor, error) {
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

// maxFree bounds how many buffers are kept for further tensors.
const maxFree = 8

// take finds memory: the smallest free buffer that is large enough, or a new one.
func (c *Checkpoint) take(size int64) []byte {
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
func (c *Checkpoint) Release(t weights.Tensor) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at, _ := slices.BinarySearchFunc(c.free, cap(t.Data), func(b []byte, size int) int { return cap(b) - size })
	c.free = slices.Insert(c.free, at, t.Data)
	c.free = slices.Delete(c.free, 0, max(len(c.free)-maxFree, 0))
}

// Notes implements weights.Checkpoint: nothing is assumed of made-up weights.
func (c *Checkpoint) Notes() []string { return nil }

// Unused implements weights.Checkpoint.
func (c *Checkpoint) Unused() []string {
	names := make([]string, 0, len(c.recipes))
	for name := range c.recipes {
		names = append(names, name)
	}
	return c.tracker.Unused(names)
}

// Assets implements weights.Checkpoint.
func (c *Checkpoint) Assets() (weights.Assets, error) {
	if c.text {
		config := c.Config()
		vocabulary := config.IntOr("vocab_size", 0)
		if err := config.Err(); err != nil {
			return weights.Assets{}, err
		}
		return text(vocabulary)
	}
	return c.assets, nil
}

// Close implements weights.Checkpoint.
func (c *Checkpoint) Close() error { return nil }

// String implements weights.Checkpoint.
func (c *Checkpoint) String() string {
	return fmt.Sprintf("made-up weights, %d tensors, matrices %s, %s", len(c.recipes), c.stored, weights.FormatBytes(c.bytes))
}
