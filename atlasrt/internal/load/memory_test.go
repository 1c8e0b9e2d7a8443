package load_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/tensor"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// memory is a checkpoint of a few tensors.
type memory struct {
	config  *weights.Config
	tensors map[string]weights.Tensor
	used    weights.Tracker
}

func newMemory(t testing.TB, config string, tensors ...weights.Tensor) *memory {
	t.Helper()
	c, err := weights.ParseConfig("config.json", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{config: c, tensors: map[string]weights.Tensor{}}
	for _, x := range tensors {
		m.tensors[x.Name] = x
	}
	return m
}

func (m *memory) Config() *weights.Config { return m.config.Fresh() }

func (m *memory) Info(name string) (weights.Info, bool) {
	t, ok := m.tensors[name]
	return t.Info, ok
}

func (m *memory) Tensor(name string) (weights.Tensor, error) {
	t, ok := m.tensors[name]
	if !ok {
		return t, fmt.Errorf("%s: %w", name, weights.ErrMissing)
	}
	m.used.Mark(name)
	return t, nil
}

func (m *memory) Unused() []string {
	var names []string
	for name := range m.tensors {
		names = append(names, name)
	}
	return m.used.Unused(names)
}

func (m *memory) Release(weights.Tensor)          {}
func (m *memory) Assets() (weights.Assets, error) { return weights.Assets{}, nil }
func (m *memory) Notes() []string                 { return nil }
func (m *memory) String() string                  { return "memory" }
func (m *memory) Close() error                    { return nil }

func stored(name string, kind tensor.Type, data []byte, shape ...int64) weights.Tensor {
	return weights.Tensor{Info: weights.Info{Name: name, Type: kind, Shape: shape}, Data: data}
}

// repeated is a tensor of one byte.
func repeated(name string, kind tensor.Type, b byte, shape ...int64) weights.Tensor {
	n, err := kind.Bytes(shape)
	if err != nil {
		panic(err)
	}
	return stored(name, kind, slices.Repeat([]byte{b}, int(n)), shape...)
}

func f32(name string, values []float32, shape ...int64) weights.Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return stored(name, tensor.F32, data, shape...)
}

func bf16(name string, values []float32, shape ...int64) weights.Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint16(data, tensor.ToBFloat16(v))
	}
	return stored(name, tensor.BF16, data, shape...)
}

// place counts and loads a stack of matrices, and reads its rows back through the oracle.
func place(m weights.Checkpoint, count, cols int32, parts func(e int32) []model.Part) (w op.Weight, rows [][]float32, err error) {
	return placeOn(oracle.New(op.F32), m, count, cols, parts)
}

// placeOn is place for a kernel set. What others place is there before.
func placeOn(set bundle.Set, m weights.Checkpoint, count, cols int32, parts func(e int32) []model.Part, others ...func(model.Source)) (w op.Weight, rows [][]float32, err error) {
	d := host.New(0)
	counter := load.NewCounter(set, load.Stored(m, set))
	for _, other := range others {
		other(counter)
	}
	counted := counter.Experts(count, cols, parts)
	if err := errors.Join(counter.Err(), weights.Check(m, counter.Wants)); err != nil {
		return w, nil, err
	}
	stream, err := d.Stream(0)
	if err != nil {
		return w, nil, err
	}
	loader, err := load.NewLoader(context.Background(), m, d, stream, set, counter)
	if err != nil {
		return w, nil, err
	}
	for _, other := range others {
		other(loader)
	}
	w = loader.Experts(count, cols, parts)
	if err := loader.Finish(); err != nil {
		return w, nil, err
	}
	if w.Scheme != counted.Scheme || w.Rows != counted.Rows || w.Stride != counted.Stride {
		return w, nil, fmt.Errorf("loaded %+v, counted %+v", w, counted)
	}
	one := w
	for e := range count {
		one.Data = w.Data + op.Ptr(w.Stride*int64(e))
		if w.Scale != 0 {
			one.Scale = w.Scale + op.Ptr(4*w.Rows*e)
		}
		for n := range w.Rows {
			id, err := d.Alloc(4)
			if err != nil {
				return w, nil, err
			}
			out, err := d.Alloc(4 * int64(cols))
			if err != nil {
				return w, nil, err
			}
			stream.Write(id, binary.LittleEndian.AppendUint32(nil, uint32(n)))
			set.Embedding(stream, op.Embedding{Out: out, IDs: id, W: one, Rows: 1})
			data, row := make([]byte, 4*cols), make([]float32, cols)
			stream.Read(data, out)
			for k := range row {
				row[k] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*k:]))
			}
			rows = append(rows, row)
			d.Free(id)
			d.Free(out)
		}
	}
	return w, rows, stream.Sync()
}

// two names the parts q and k of one matrix.
func two(q, k int32) func(int32) []model.Part {
	return func(int32) []model.Part {
		return []model.Part{{Name: "q.weight", Rows: q}, {Name: "k.weight", Rows: k}}
	}
}
