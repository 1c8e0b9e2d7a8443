// Package dummy makes up a checkpoint from a list of tensors, to measure and to test without downloading a model.
//
// Invariants: a tensor's bytes depend on its name, type and shape only, and any program can compute them:
//
//   - word(j) is output j of SplitMix64 whose state starts as the 64-bit FNV-1a hash of the name:
//     z = seed + (j+1)·0x9e3779b97f4a7c15; z = (z ^ z>>30)·0xbf58476d1ce4e5b9; z = (z ^ z>>27)·0x94d049bb133111eb; z ^ z>>31.
//   - Element i of a BF16, F16 or F32 tensor: u is bits 16·(i mod 4) and up of word(i/4), 16 of them;
//     x = float32(2u − 65535)·float32(a/65536), rounded once. a is √(3/columns) for two dimensions or more, which keeps
//     the size of what passes through, else 1/16. A vector whose name holds "norm" is 1 + x in float32.
//   - Byte i of a U8 or I32 tensor (packed codes) is byte i of the words, lowest first; of F8_E4M3 the same, bit 6 cleared,
//     which leaves magnitudes below 2.
//   - Block b of Q8_0: 32 codes from words 5b…5b+3, 0x80 becoming 0x81; of Q4_0 and Q4_1: 16 bytes of codes from words 3b
//     and 3b+1. The next word's low 16 bits u give d = float16(float32(98304 + u)·float32(k/131072)) with
//     k = 1/(74·√columns) or 1/(4.6·√columns); Q4_1's minimum is float16(−7.5·d).
//   - A tensor whose name holds "scale" is constant: 1 in F8_E4M3, F8_E8M0 and U8, 32 in a float type when the name holds
//     "global_scale", else 1/32.
//
// Tensors are made when they are asked for and kept by nobody.
package dummy

import (
	"fmt"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
)

// Options says what to make.
type Options struct {
	// Matrices is the type of matrices where a Want leaves the choice: BF16 (also when zero), F16, F32, Q8_0, Q4_0 or Q4_1.
	// Where columns do not fill blocks of 32 it is BF16.
	Matrices weights.Type
	// Vectors is the type of vectors where a Want leaves the choice: F32 (also when zero), BF16 or F16.
	Vectors weights.Type
	// Assets is what the checkpoint's Assets gives.
	Assets weights.Assets
}

type checkpoint struct {
	config  *weights.Config
	assets  weights.Assets
	infos   map[string]weights.Info
	bytes   int64
	matrix  weights.Type
	tracker weights.Tracker
}

// New makes a checkpoint that holds every tensor of wants, optional ones too. It fails when a tensor has no type that can
// be made, or a size that cannot be.
func New(config *weights.Config, wants []weights.Want, options Options) (weights.Checkpoint, error) {
	if options.Matrices == 0 {
		options.Matrices = tensor.BF16
	}
	if options.Vectors == 0 {
		options.Vectors = tensor.F32
	}
	c := &checkpoint{config: config, assets: options.Assets, infos: map[string]weights.Info{}, matrix: options.Matrices}
	for _, want := range wants {
		info := weights.Info{Name: want.Name, Type: choose(want, options), Shape: want.Shape}
		if !makes(info.Type) {
			return nil, fmt.Errorf("dummy weights: %v: no values are made up for this type", info)
		}
		bytes, err := info.Type.Bytes(info.Shape)
		if err != nil {
			return nil, fmt.Errorf("dummy weights: %v: %w", info, err)
		}
		if _, ok := c.infos[want.Name]; ok {
			return nil, fmt.Errorf("dummy weights: %s is listed twice", want.Name)
		}
		c.infos[want.Name] = info
		c.bytes += bytes
	}
	return c, nil
}

// choose picks the type of a tensor: what the options prefer if the want allows it, else the want's first.
func choose(want weights.Want, options Options) weights.Type {
	preferred := options.Vectors
	if len(want.Shape) > 1 {
		preferred = options.Matrices
		if _, err := preferred.Bytes(want.Shape); err != nil {
			preferred = tensor.BF16
		}
	}
	if len(want.Types) > 0 && !slices.Contains(want.Types, preferred) {
		return want.Types[0]
	}
	return preferred
}

func (c *checkpoint) Config() *weights.Config { return c.config.Fresh() }

func (c *checkpoint) Info(name string) (weights.Info, bool) {
	info, ok := c.infos[name]
	return info, ok
}

func (c *checkpoint) Tensor(name string) (weights.Tensor, error) {
	info, ok := c.infos[name]
	if !ok {
		return weights.Tensor{}, fmt.Errorf("%s: %w", name, weights.ErrMissing)
	}
	c.tracker.Mark(name)
	data, err := Fill(info)
	return weights.Tensor{Info: info, Data: data}, err
}

func (c *checkpoint) Unused() []string {
	names := make([]string, 0, len(c.infos))
	for name := range c.infos {
		names = append(names, name)
	}
	return c.tracker.Unused(names)
}

func (c *checkpoint) Release(weights.Tensor)          {}
func (c *checkpoint) Assets() (weights.Assets, error) { return c.assets, nil }
func (c *checkpoint) Close() error                    { return nil }

func (c *checkpoint) String() string {
	return fmt.Sprintf("made-up weights, %d tensors, matrices %v, %s", len(c.infos), c.matrix, weights.FormatBytes(c.bytes))
}
