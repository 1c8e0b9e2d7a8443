package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// fakeModel writes each row's token and position to the paged cache, reads all of its sequence back through the block
// table, and makes logits of a hash of what it read: a wrong slot, table, length or a block that is overwritten too early
// gives wrong tokens.
type fakeModel struct {
	layout model.Layout
	device *tapeDevice
	poison int32 // a prompt that begins with this token gives logits that are not numbers; 0 is none
	read   [][]int32
}

const fakeVocab = 40

func newFakeModel(d *tapeDevice) *fakeModel {
	return &fakeModel{layout: model.Layout{Memory: []model.Memory{model.KeysAndValues(1, 2), model.KeysAndValues(2, 1)}, Vocab: fakeVocab, MaxContext: 400, Drafts: fakeJournal}, device: d}
}

func (m *fakeModel) Layout() model.Layout { return m.layout }

// Forward is three kernels: one writes the cache, one attends, and one makes logits. What the attention gives lies in
// memory of the model's own, as activations do.
func (m *fakeModel) Forward(q op.Stream, in *model.Inputs) {
	step := *in
	read := &m.read
	m.device.launch(q, func() { m.write(q, &step) })
	model.BeginLive(q)
	m.device.launch(q, func() { m.attend(q, &step, read) })
	model.EndLive(q)
	// Of a step only what pieces may depend on.
	m.device.launch(q, func() { m.head(q, step.Index, step.Logits, step.Outputs, read) })
}

// ints and put move words of device memory.
func (m *fakeModel) ints(q op.Stream, p op.Ptr, n int32) []int32 {
	bytes := make([]byte, 4*n)
	if err := m.device.CopyOut(bytes, p); err != nil {
		q.Fail(err)
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return out
}

func (m *fakeModel) put(q op.Stream, p op.Ptr, words ...uint32) {
	var bytes []byte
	for _, w := range words {
		bytes = binary.LittleEndian.AppendUint32(bytes, w)
	}
	if err := m.device.CopyIn(p, bytes); err != nil {
		q.Fail(err)
	}
}

func (m *fakeModel) write(q op.Stream, in *model.Inputs) {
	m.device.pause.Lock()
	defer m.device.pause.Unlock()
	n := m.device.steps.Add(1)
	if m.device.fault != nil {
		if err := m.device.fault(n); err != nil {
			q.Fail(err)
			if errors.Is(err, errPanic) {
				panic(err)
			}
			return
		}
	}
	tokens, positions, slots := m.ints(q, in.Tokens, in.Rows), m.ints(q, in.Positions, in.Rows), m.ints(q, in.Slots, in.Rows)
	for r, slot := range slots {
		if slot >= in.Blocks*in.BlockSize {
			q.Fail(fmt.Errorf("slot %d of %d blocks", slot, in.Blocks))
			return
		}
		if slot >= 0 {
			m.put(q, in.Memory[0][0]+op.Ptr(8*slot), uint32(tokens[r]), uint32(positions[r]))
			block, offset := slot/in.BlockSize, slot%in.BlockSize // [Blocks,KVHeads 2,BlockSize,HeadDim 1]
			m.put(q, in.Memory[1][1]+op.Ptr(4*(block*2*in.BlockSize+in.BlockSize+offset)), uint32(tokens[r]))
		}
	}
}

// attend makes read the tokens that each row sees.
func (m *fakeModel) attend(q op.Stream, in *model.Inputs, read *[][]int32) {
	positions := m.ints(q, in.Positions, in.Rows)
	starts, lengths, tables := m.ints(q, in.Starts, in.Seqs+1), m.ints(q, in.Lengths, in.Seqs), m.ints(q, in.Tables, in.Seqs*in.MaxBlocks)
	*read = make([][]int32, in.Rows)
	for s := range lengths {
		for r := starts[s]; r < starts[s+1]; r++ {
			p := lengths[s] - (starts[s+1] - r)
			if p != positions[r] {
				q.Fail(fmt.Errorf("row %d stands at %d, and its position says %d", r, p, positions[r]))
				return
			}
			for t := int32(0); t <= p; t++ {
				block := tables[int32(s)*in.MaxBlocks+t/in.BlockSize]
				k := m.ints(q, in.Memory[0][0]+op.Ptr(8*(block*in.BlockSize+t%in.BlockSize)), 2)
				v := m.ints(q, in.Memory[1][1]+op.Ptr(4*(block*2*in.BlockSize+in.BlockSize+t%in.BlockSize)), 1)
				if k[1] != t || v[0] != k[0] {
					q.Fail(fmt.Errorf("token %d of a sequence: the cache holds position %d, key %d and value %d", t, k[1], k[0], v[0]))
					return
				}
				(*read)[r] = append((*read)[r], k[0])
			}
		}
	}
	m.advance(q, in, *read)
}

func (m *fakeModel) head(q op.Stream, index, logits op.Ptr, outputs int32, read *[][]int32) {
	for i, r := range m.ints(q, index, outputs) {
		row := make([]uint32, fakeVocab)
		if r >= 0 && int(r) < len(*read) {
			for v, z := range m.logits((*read)[r]) {
				row[v] = math.Float32bits(z)
			}
		}
		m.put(q, logits+op.Ptr(4*i*fakeVocab), row...)
	}
}

// hash goes on from the hash of the tokens before.
func hash(h uint32, tokens []int32) uint32 {
	for _, token := range tokens {
		h = (h ^ uint32(token)) * 16777619
	}
	return h
}

// noTokens is the hash of none.
const noTokens uint32 = 2166136261

// logits is what the model gives after tokens.
func (m *fakeModel) logits(tokens []int32) []float32 {
	h := hash(noTokens, tokens)
	out := make([]float32, fakeVocab)
	for v := range out {
		x := (h ^ uint32(v)) * 2654435761
		x ^= x >> 15
		x *= 2246822519
		out[v] = float32(x>>8)/(1<<21) - 4
	}
	if m.poison != 0 && len(tokens) > 0 && tokens[0] == m.poison {
		for v := range out {
			out[v] = float32(math.NaN())
		}
	}
	return out
}

// drawn is what a request must give, from the formulas of op.Sample; it knows no top-k, top-p and min-p.
func (m *fakeModel) drawn(r Request) []int32 {
	all := slices.Clone(r.Prompt)
	for {
		generated := all[len(r.Prompt):]
		if token, ok := closes(r.Budget, generated); ok && may(r, generated, token) {
			if all = append(all, token); len(all) == len(r.Prompt)+r.MaxTokens || slices.Contains(r.End, token) {
				return all[len(r.Prompt):]
			}
			continue
		}
		type choice struct {
			token int32
			z     float64
		}
		var choices []choice
		for v, z := range m.logits(all) {
			token := int32(v)
			if len(generated) < r.MinTokens && slices.Contains(r.End, token) || !may(r, generated, token) || bad(r, generated, token) {
				continue
			}
			z += r.Sampling.LogitBias[token]
			if slices.Contains(all, token) && z > 0 {
				z /= r.Sampling.RepetitionPenalty
			} else if slices.Contains(all, token) {
				z *= r.Sampling.RepetitionPenalty
			}
			for i, g := range generated {
				if g == token {
					z -= r.Sampling.FrequencyPenalty
					if slices.Index(generated, g) == i {
						z -= r.Sampling.PresencePenalty
					}
				}
			}
			choices = append(choices, choice{token, float64(z)})
		}
		if len(choices) == 0 {
			return generated
		}
		slices.SortStableFunc(choices, func(a, b choice) int { return cmp.Compare(b.z, a.z) })
		next := choices[0].token
		if temperature := float64(r.Sampling.Temperature); temperature > 0 {
			sum := 0.0
			for _, c := range choices {
				sum += math.Exp(c.z / temperature)
			}
			u, before := float64(op.Uniform(r.Sampling.Seed, int32(len(all)))), 0.0
			for _, c := range choices {
				if before += math.Exp(c.z/temperature) / sum; before > u {
					next = c.token
					break
				}
			}
		}
		all = append(all, next)
		if len(all) == len(r.Prompt)+r.MaxTokens || slices.Contains(r.End, next) {
			return all[len(r.Prompt):]
		}
	}
}

// bad tells whether a token ends a bad word behind those that were generated.
func bad(r Request, generated []int32, token int32) bool {
	return slices.ContainsFunc(r.Sampling.BadWords, func(word []int32) bool {
		last := len(word) - 1
		return word[last] == token && last <= len(generated) && slices.Equal(generated[len(generated)-last:], word[:last])
	})
}

// greedy is what a prompt must give, whatever runs beside it.
func (m *fakeModel) greedy(prompt []int32, n int) []int32 {
	all := append([]int32(nil), prompt...)
	for range n {
		best := int32(0)
		logits := m.logits(all)
		for v, z := range logits {
			if z > logits[best] {
				best = int32(v)
			}
		}
		all = append(all, best)
	}
	return all[len(prompt):]
}

var (
	errBroken = errors.New("the device is on fire")
	errPanic  = errors.New("kernel table is empty") // fails the stream, and panics
)

// fixture is an engine on the fake model.
type fixture struct {
	*Engine
	model   *fakeModel
	drafter *fakeDrafter // nil: nothing is drafted
	device  *tapeDevice
	graphs  *graphDevice
	ahead   *aheadDevice
}

func newFixture(t *testing.T, change func(*Config, *fixture)) *fixture {
	t.Helper()
	d := &tapeDevice{Device: host.New(0)}
	f := &fixture{device: d, model: newFakeModel(d), graphs: &graphDevice{tapeDevice: d}}
	f.ahead = &aheadDevice{graphDevice: f.graphs}
	c := Config{Device: d, Set: tapeSampler{oracle.New(op.F32), d}, Model: f.model, KVType: op.F32, BlockSize: 4, Blocks: 400, MaxBatchTokens: 32, MaxSequences: 16}
	if change != nil {
		change(&c, f)
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	f.Engine = e
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if free, total := d.Memory(); free != total {
			t.Errorf("after Close: %d bytes are not given back", total-free)
		}
		if n := f.ahead.early; n > 0 {
			t.Errorf("%d times inputs were sent into a mailbox that a step may have read", n)
		}
	})
	return f
}
