package dummy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// The recorded values come from tools/testdata/dummy_values.py, which follows the package comment.
func TestValuesAreThoseOfTheSpecification(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "values.json"))
	if err != nil {
		t.Fatal(err)
	}
	var records []struct {
		Name, Type    string
		Shape         []int64
		Start, SHA256 string
		Scheme        string // of the matrix that this is the scale of
		Matrix        string
		MatrixShape   []int64
		Plus          float32
	}
	if err := json.Unmarshal(text, &records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		kind, ok := tensor.Parse(r.Type)
		if !ok {
			t.Fatalf("no type %s", r.Type)
		}
		info := weights.Info{Name: r.Name, Type: kind, Shape: r.Shape}
		want, scheme := weights.Want{Name: r.Name, Shape: r.Shape, Types: []weights.Type{kind}, Plus: r.Plus}, op.SchemeBF16
		if r.Scheme != "" {
			want = weights.Want{Name: r.Matrix, Shape: r.MatrixShape}
			if scheme, err = op.ParseScheme(r.Scheme); err != nil {
				t.Fatal(err)
			}
		}
		data := made(t, scheme, want, info)
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(data[:min(16, len(data))]); got != r.Start || hex.EncodeToString(sum[:]) != r.SHA256 {
			t.Errorf("%v starts with %s, want %s; sha256 %x, want %s", info, got, r.Start, sum, r.SHA256)
		}
	}
}

// made is a tensor of a checkpoint that is made for one want.
func made(t testing.TB, scheme op.Scheme, want weights.Want, info weights.Info) []byte {
	t.Helper()
	config, err := weights.ParseConfig("config.json", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(config, []weights.Want{want}, Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := c.Info(info.Name); !ok || got.String() != info.String() {
		t.Fatalf("%s is %v, want %v", info.Name, got, info)
	}
	x, err := c.Tensor(info.Name)
	if err != nil {
		t.Fatal(err)
	}
	return x.Data
}

// Whatever the type, a matrix keeps the size of what it multiplies: its elements have a deviation of about 1/√columns.
func TestMatricesKeepSize(t *testing.T) {
	for _, kind := range []weights.Type{tensor.BF16, tensor.F16, tensor.F32, tensor.Q8_0, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q4_K, tensor.Q6_K} {
		info := weights.Info{Name: "w", Type: kind, Shape: []int64{64, 1024}}
		data := made(t, op.SchemeBF16, weights.Want{Name: "w", Shape: info.Shape, Types: []weights.Type{kind}}, info)
		values := make([]float32, info.Elements())
		if err := gguf.Dequantize(values, kind, data); err != nil {
			t.Fatal(err)
		}
		sum, squares := 0.0, 0.0
		for _, v := range values {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		n := float64(len(values))
		mean, deviation := sum/n, math.Sqrt(squares/n)
		if want := 1.0 / 32; math.Abs(deviation-want) > 0.05*want || math.Abs(mean) > 0.02*want {
			t.Errorf("%v: mean %v, deviation %v; want 0 and %v", kind, mean, deviation, want)
		}
	}
}

func TestCheckpoint(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(`{"hidden_size": 96}`))
	if err != nil {
		t.Fatal(err)
	}
	wants := []weights.Want{
		{Name: "matrix", Shape: []int64{4, 96}},
		{Name: "odd", Shape: []int64{4, 50}},
		{Name: "layers.0.mlp.gate.weight", Shape: []int64{4, 96}},
		{Name: "norm", Shape: []int64{96}},
		{Name: "norm2", Shape: []int64{96}, Types: []weights.Type{tensor.BF16}},
		{Name: "packed", Shape: []int64{4, 48}, Types: []weights.Type{tensor.U8}},
		{Name: "block_scale", Shape: []int64{4, 6}, Types: []weights.Type{tensor.F8_E4M3}},
	}
	c, err := New(config, wants, Options{Scheme: op.SchemeQ4_0, Assets: weights.Assets{Tokenizer: []byte("T")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, want := range map[string]string{
		"matrix": "matrix Q4_0 [4, 96]", "odd": "odd BF16 [4, 50]", "layers.0.mlp.gate.weight": "layers.0.mlp.gate.weight BF16 [4, 96]", "norm": "norm F32 [96]", "norm2": "norm2 BF16 [96]", "packed": "packed U8 [4, 48]",
		"block_scale": "block_scale F8_E4M3 [4, 6]",
	} {
		if info, ok := c.Info(name); !ok || info.String() != want {
			t.Errorf("%s: %v, %v; want %s", name, info, ok, want)
		}
	}
	if err := weights.Check(c, wants); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(c.Unused()); got != "[layers.0.mlp.gate.weight matrix odd packed]" {
		t.Errorf("unused after Check: %s", got)
	}
	if _, err := c.Tensor("none"); !errors.Is(err, weights.ErrMissing) {
		t.Errorf("Tensor(none): %v, want %v", err, weights.ErrMissing)
	}
	if x, err := c.Tensor("matrix"); err != nil || len(x.Data) != 4*3*18 || weights.Finite(x) != nil {
		t.Errorf("matrix: %d bytes, %v", len(x.Data), err)
	}
	a, err := c.Assets()
	if err != nil || string(a.Tokenizer) != "T" || c.Config().Int("hidden_size") != 96 || !strings.Contains(c.String(), "7 tensors, matrices q4_0") {
		t.Errorf("assets %v, %v; %s", a, err, c)
	}
}

func TestNewRefuses(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	one := weights.Want{Name: "a", Shape: []int64{4}}
	cases := []struct {
		wants   []weights.Want
		options Options
		want    string
	}{
		{[]weights.Want{one, one}, Options{}, "a is listed twice"},
		{[]weights.Want{{Name: "a", Shape: []int64{1 << 40, 1 << 40}}}, Options{}, "2^63"},
		{[]weights.Want{{Name: "a", Shape: []int64{2, 256}, Types: []weights.Type{tensor.Q5_K}}}, Options{}, "no values are made up"},
		{[]weights.Want{{Name: "a", Types: []weights.Type{tensor.I64}}}, Options{}, "no values are made up"},
		{[]weights.Want{{Name: "a", Shape: []int64{-1}}}, Options{}, "negative"},
	}
	for _, c := range cases {
		if _, err := New(config, c.wants, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.wants, err, c.want)
		}
	}
}

// Memory that was released is used again, and not before.
func TestReleasedMemoryIsUsedAgain(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	wants := []weights.Want{{Name: "large", Shape: []int64{64, 64}}, {Name: "small", Shape: []int64{8, 64}}}
	c, err := New(config, wants, Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) weights.Tensor {
		x, err := c.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	large, small := read("large"), read("small")
	keep := string(small.Data)
	c.Release(large)
	again := read("small")
	if string(again.Data) != keep || string(small.Data) != keep {
		t.Error("a tensor is not the same the second time")
	}
	if &again.Data[0] != &large.Data[0] {
		t.Error("memory that was released is not used again")
	}
}

func BenchmarkTensor(b *testing.B) {
	config, err := weights.ParseConfig("config.json", []byte(`{}`))
	if err != nil {
		b.Fatal(err)
	}
	for _, scheme := range []op.Scheme{op.SchemeBF16, op.SchemeQ4_0, op.SchemeNVFP4} {
		c, err := New(config, []weights.Want{{Name: "q_proj.weight", Shape: []int64{4096, 4096}}}, Options{Scheme: scheme})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(scheme.String(), func(b *testing.B) {
			for b.Loop() {
				x, err := c.Tensor("q_proj.weight")
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(x.Data)))
				c.Release(x)
			}
		})
	}
}

// Of 36 layers 18 have more bits.
func TestMixtureGivesMoreBitsToLayersThatNeedThem(t *testing.T) {
	options, err := Parse("q4_k_m")
	if err != nil || options.String() != "q4_k_m" {
		t.Fatalf("got %v, %v", options, err)
	}
	config, err := weights.ParseConfig("config.json", []byte(`{"num_hidden_layers": 36}`))
	if err != nil {
		t.Fatal(err)
	}
	wants := []weights.Want{{Name: "lm_head.weight", Shape: []int64{16, 256}}, {Name: "model.embed_tokens.weight", Shape: []int64{16, 256}}}
	for i := range 36 {
		for _, name := range []string{"self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj", "mlp.experts.3.down_proj"} {
			wants = append(wants, weights.Want{Name: fmt.Sprintf("model.layers.%d.%s.weight", i, name), Shape: []int64{16, 256}})
		}
	}
	c, err := New(config, wants, options)
	if err != nil {
		t.Fatal(err)
	}
	var layers []int
	for i := range 36 {
		kind := func(name string) tensor.Type {
			info, ok := c.Info(fmt.Sprintf("model.layers.%d.%s.weight", i, name))
			if !ok {
				t.Fatalf("no %s of layer %d", name, i)
			}
			return info.Type
		}
		v := kind("self_attn.v_proj")
		if kind("self_attn.q_proj") != tensor.Q4_K || kind("mlp.down_proj") != v || kind("mlp.experts.3.down_proj") != v {
			t.Errorf("layer %d: q %v, v %v, down %v", i, kind("self_attn.q_proj"), v, kind("mlp.down_proj"))
		}
		if v == tensor.Q6_K {
			layers = append(layers, i)
		}
	}
	if want := []int{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 32, 33, 34, 35}; !slices.Equal(layers, want) {
		t.Errorf("more bits in layers %v, want %v", layers, want)
	}
	head, _ := c.Info("lm_head.weight")
	embedding, _ := c.Info("model.embed_tokens.weight")
	if head.Type != tensor.Q6_K || embedding.Type != tensor.Q4_K {
		t.Errorf("head %v, embedding %v", head.Type, embedding.Type)
	}
}
