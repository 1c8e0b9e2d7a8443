package instance

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// sequenceBlock is the tokens per cache block of a Sequence.
const sequenceBlock = 16

// Sequence runs one sequence straight through a model, without a scheduler: for comparing logits with references.
type Sequence struct {
	device  device.Device
	stream  device.Stream
	model   model.Model
	layout  model.Layout
	in      model.Inputs
	rows    int32 // most rows per step
	context int32
	length  int32
	memory  []op.Ptr
}

// NewSequence takes memory for context tokens, at most rows of them in one step.
func NewSequence(d device.Device, stream device.Stream, m model.Model, context, rows int32, kv op.DType) (*Sequence, error) {
	s := &Sequence{device: d, stream: stream, model: m, layout: m.Layout(), rows: rows, context: context}
	blocks := (context + sequenceBlock - 1) / sequenceBlock
	var failed error
	alloc := func(bytes int64) op.Ptr {
		p, err := d.Alloc(bytes)
		if err != nil && failed == nil {
			failed = err
		}
		s.memory = append(s.memory, p)
		return p
	}
	s.in = model.Inputs{
		Tokens: alloc(int64(rows) * 4), Positions: alloc(int64(rows) * 4), Slots: alloc(int64(rows) * 4), Index: alloc(int64(rows) * 4),
		Starts: alloc(8), Lengths: alloc(4), Tables: alloc(int64(blocks) * 4), Logits: alloc(int64(rows) * int64(s.layout.Vocab) * 4),
		Seqs: 1, MaxBlocks: blocks, Blocks: blocks, BlockSize: sequenceBlock, KVType: kv,
	}
	for _, layer := range s.layout.KV {
		bytes := int64(blocks) * sequenceBlock * int64(layer.Heads) * int64(layer.HeadDim) * kv.Bytes()
		s.in.Cache = append(s.in.Cache, model.Cache{K: alloc(bytes), V: alloc(bytes)})
	}
	if failed != nil {
		s.Close()
		return nil, failed
	}
	table := make([]int32, blocks)
	for i := range table {
		table[i] = blocks - 1 - int32(i) // any order will do; the reverse shows mistakes
	}
	stream.Write(s.in.Tables, words(table))
	return s, stream.Sync()
}

// Append runs tokens and gives the logits after each of them, f32 [len(tokens)·Vocab].
func (s *Sequence) Append(tokens []int32) ([]float32, error) {
	if int(s.length)+len(tokens) > int(s.context) {
		return nil, fmt.Errorf("%d tokens do not fit the %d of this sequence", int(s.length)+len(tokens), s.context)
	}
	logits := make([]float32, 0, len(tokens)*int(s.layout.Vocab))
	for len(tokens) > 0 {
		n := min(int(s.rows), len(tokens))
		part, err := s.step(tokens[:n])
		if err != nil {
			return nil, err
		}
		logits = append(logits, part...)
		tokens = tokens[n:]
	}
	return logits, nil
}

func (s *Sequence) step(tokens []int32) ([]float32, error) {
	n := int32(len(tokens))
	positions, slots, index := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range n {
		p := s.length + i
		positions[i], index[i] = p, i
		slots[i] = (s.in.MaxBlocks-1-p/sequenceBlock)*sequenceBlock + p%sequenceBlock
	}
	s.length += n
	s.stream.Write(s.in.Tokens, words(tokens))
	s.stream.Write(s.in.Positions, words(positions))
	s.stream.Write(s.in.Slots, words(slots))
	s.stream.Write(s.in.Index, words(index))
	s.stream.Write(s.in.Starts, words([]int32{0, n}))
	s.stream.Write(s.in.Lengths, words([]int32{s.length}))
	s.in.Rows, s.in.Outputs = n, n
	s.model.Forward(s.stream, &s.in)
	raw := make([]byte, int(n)*int(s.layout.Vocab)*4)
	s.stream.Read(raw, s.in.Logits)
	if err := s.stream.Sync(); err != nil {
		return nil, err
	}
	logits := make([]float32, len(raw)/4)
	for i := range logits {
		logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return logits, nil
}

// Greedy continues with the likeliest token, n times, after the logits that Append gave last.
func (s *Sequence) Greedy(logits []float32, n int) ([]int32, error) {
	var tokens []int32
	for len(tokens) < n {
		tokens = append(tokens, Argmax(logits[len(logits)-int(s.layout.Vocab):]))
		if len(tokens) == n {
			break
		}
		var err error
		if logits, err = s.Append(tokens[len(tokens)-1:]); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// Argmax is the index of the largest value, the lowest where several are.
func Argmax(values []float32) int32 {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return int32(best)
}

// Close gives the sequence's memory back.
func (s *Sequence) Close() {
	for _, p := range s.memory {
		s.device.Free(p)
	}
	s.memory = nil
}

// words views 32-bit values as bytes.
func words(v []int32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}
