// Package solo runs one sequence of a model and of the head that drafts for it, for comparing both with references. It plays an engine's part
// step by step, with the same operations in the same order, and hands out what a step computed on its way.
package solo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Head is a drafter whose scores can be read.
type Head interface {
	model.Drafter
	// Columns is how many tokens can be drafted, all of which have a logit.
	Columns() int32
	// Scores takes a step's rows in as Draft does, and leaves the logits of some of them in out, f32 [rows,Columns].
	Scores(q op.Stream, in *model.Drafting, out, index op.Ptr, rows int32)
	// Last is where the logits of the last draft of each chunk lie, f32 [Chunks,Columns].
	Last() op.Ptr
}

// Decoder is a model whose hidden states can be read.
type Decoder interface {
	model.Model
	// Hidden is where the rows of the last step lie behind the last norm, act [Rows,columns].
	Hidden() (rows op.Ptr, columns int32)
}

// Set is what a step launches besides its model.
type Set interface {
	op.Drafting
	Sample(op.Stream, op.Sample)
}

// Config is what a sequence is made of.
type Config struct {
	Device    device.Device // whose memory it takes
	Stream    device.Stream // with enough scratch memory for any launch of the step
	Set       Set           // the kernel set
	Model     Decoder       // with buffers for Rows
	Head      Head          // that drafts for Model
	Act       op.DType      // element type of activations
	KVType    op.DType      // element type of the cache
	Rows      int           // most of a step
	Drafts    int           // most that are made behind a step
	Context   int           // tokens
	BlockSize int           // tokens of a block
}

// Sequence is one sequence, at some length. Close gives its memory back.
type Sequence struct {
	Config
	vocab    int // tokens that the model knows
	columns  int // tokens that the head drafts
	length   int // tokens whose rows count
	accepted int // drafts of the step before that did
	owned    []op.Ptr
	inputs   model.Inputs
	drafting model.Drafting
	sample   op.Sample
	accept   op.Accept
	rows     op.DraftRows
	scores   op.Ptr // f32 [Rows,Columns]
	zero     op.Ptr // i32 [Rows+1]
}

// Step is what a step computed. Rows follow each other.
type Step struct {
	Hidden []float32 // [Rows,Hidden]: of the model, behind its last norm
	Logits []float32 // [Rows,Vocab]: of the model
	Scores []float32 // [Rows,Columns]: of the head, for the token behind the one behind each row
	Draws  []int32   // the likeliest token behind each row that one was drawn of
	Count  int       // draws that count
	Drafts []int32   // what comes behind them, as the head guesses
	Guess  []float32 // [len(Drafts),Columns]: the logits of each draft
}

// New takes the memory of a sequence. It comes as zeros.
func New(c Config) (*Sequence, error) {
	s := &Sequence{Config: c, vocab: int(c.Model.Layout().Vocab), columns: int(c.Head.Columns())}
	var errs []error
	take := func(bytes int) op.Ptr {
		p, err := c.Device.Alloc(int64(max(bytes, 4)))
		if err != nil {
			errs = append(errs, err)
		}
		s.owned = append(s.owned, p)
		return p
	}
	words := func(n int) op.Ptr { return take(4 * n) }
	blocks := (c.Context + c.BlockSize - 1) / c.BlockSize
	held := map[model.Kind]int64{model.PerToken: int64(blocks * c.BlockSize), model.PerSequence: 1}
	arrays := func(kept []model.Memory) (all [][]op.Ptr) {
		for _, m := range kept {
			var addresses []op.Ptr
			for _, a := range m.Arrays {
				t := a.Type
				if t == 0 {
					t = c.KVType
				}
				addresses = append(addresses, take(int(held[m.Kind]*a.Elements*t.Bytes())))
			}
			all = append(all, addresses)
		}
		return all
	}
	n, pitch := c.Rows, 4
	s.inputs = model.Inputs{
		Tokens: words(n), Positions: words(n), Slots: words(n), Starts: words(2), Lengths: words(1), Tables: words(blocks), States: words(1), Drafts: words(1), Accepted: words(1),
		Index: words(n), Logits: words(n * s.vocab), Memory: arrays(c.Model.Layout().Memory), Seqs: 1, MaxBlocks: int32(blocks), Blocks: int32(blocks),
		BlockSize: int32(c.BlockSize), StateSlots: 1, KVType: c.KVType,
	}
	in := &s.inputs
	s.drafting = model.Drafting{
		Step: in, Memory: arrays(c.Head.Memory()), Behind: words(n), Last: words(1), Next: words((1 + c.Drafts) * pitch), Positions: words(c.Drafts * pitch),
		Slots: words(c.Drafts * pitch), Lengths: words(c.Drafts * pitch), Starts: words(2), Pitch: int32(pitch),
	}
	d := &s.drafting
	s.zero, s.scores = words(2*n+2), words(n*s.columns)
	z := s.zero
	s.sample = op.Likeliest(words(n), 0, z, 0, int32(s.vocab))
	s.accept = op.Accept{Counts: words(1), Next: d.Next, Last: d.Last, Draws: s.sample.Out, Behind: d.Behind, Starts: words(2), Index: words(n), Tokens: in.Tokens, Position: z, Chunks: 1}
	s.rows = op.DraftRows{Positions: d.Positions, Slots: d.Slots, Lengths: d.Lengths, Last: d.Last, StepPositions: in.Positions, Starts: d.Starts, Tables: in.Tables,
		Room: words(1), Chunks: 1, Seqs: 1, MaxBlocks: in.MaxBlocks, Pitch: d.Pitch, BlockSize: in.BlockSize}
	table := make([]int32, blocks)
	for i := range table {
		table[i] = int32(blocks - 1 - i)
	}
	s.write(in.Tables, table...)
	s.write(s.rows.Room, int32(blocks*c.BlockSize))
	s.write(d.Starts, 0, 1)
	return s, errors.Join(append(errs, c.Stream.Sync())...)
}

// Close gives the memory back.
func (s *Sequence) Close() {
	for _, p := range s.owned {
		s.Device.Free(p)
	}
}

// Take computes tokens of a prompt. The token behind the last one is known.
func (s *Sequence) Take(tokens []int32, behind int32) (Step, error) {
	return s.step(tokens, 0, append(append([]int32(nil), tokens[1:]...), behind), 0)
}

// Draw computes tokens, the last of which are drafts, draws behind those and the one before them, and lets the head make drafts of what comes
// behind the draws that count.
func (s *Sequence) Draw(tokens []int32, drafts, more int) (Step, error) {
	behind := append(append([]int32(nil), tokens[1:]...), -1)
	return s.step(tokens, 1+drafts, behind, more)
}

// step computes tokens, of which the last draws have a token drawn behind them. behind is the token behind each of the others.
func (s *Sequence) step(tokens []int32, draws int, behind []int32, more int) (step Step, err error) {
	n := len(tokens)
	if n > s.Rows || s.length+n > s.Context || draws > n || more > s.Drafts {
		return step, fmt.Errorf("%d tokens behind %d, %d draws, %d drafts: the sequence is made for %d in a step, %d in all and %d drafts", n, s.length, draws, more, s.Rows, s.Context, s.Drafts)
	}
	in, d := &s.inputs, &s.drafting
	in.Rows, in.Outputs = int32(n), int32(n)
	positions, slots, index := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range positions {
		at := s.length + i
		positions[i], index[i] = int32(at), int32(i)
		slots[i] = int32((int(in.MaxBlocks)-1-at/s.BlockSize)*s.BlockSize + at%s.BlockSize)
	}
	s.write(in.Tokens, tokens...)
	s.write(in.Positions, positions...)
	s.write(in.Slots, slots...)
	s.write(in.Index, index...)
	s.write(in.Starts, 0, int32(n))
	s.write(in.Lengths, int32(s.length+n))
	s.write(in.Drafts, int32(max(draws-1, 0)))
	s.write(in.Accepted, int32(s.accepted))
	s.write(d.Behind, behind...)
	s.Model.Forward(s.Stream, in)
	if draws > 0 {
		s.choose(draws, index)
	}
	d.Chunks = int32(min(draws, 1))
	s.Head.Scores(s.Stream, d, s.scores, in.Index, in.Rows)
	for d.Drafts = int32(min(more, 1)); d.Drafts <= int32(more); d.Drafts++ { // what is drafted again is the same
		if s.rows.Passes = d.Drafts - 1; s.rows.Passes > 0 {
			s.rows.Rows = in.Rows
			s.Set.DraftRows(s.Stream, s.rows)
		}
		s.Head.Draft(s.Stream, d)
		if d.Drafts > 0 {
			step.Guess = append(step.Guess, s.floats(s.Head.Last(), s.columns)...)
		}
	}
	hidden, columns := s.Model.Hidden()
	step = Step{Guess: step.Guess, Hidden: s.activations(hidden, n*int(columns)), Logits: s.floats(in.Logits, n*s.vocab), Scores: s.floats(s.scores, n*s.columns)}
	s.length, s.accepted = s.length+n, 0
	if draws > 0 {
		step.Draws, step.Count = s.ints(s.sample.Out, draws), int(s.ints(s.accept.Counts, 1)[0])
		s.length, s.accepted = s.length-draws+step.Count, step.Count-1
		for i := range more {
			step.Drafts = append(step.Drafts, s.ints(d.Next+op.Ptr(4*(1+i)*int(d.Pitch)), 1)...)
		}
	}
	return step, s.Stream.Sync()
}

// choose draws behind the last rows and counts the draws that count.
func (s *Sequence) choose(draws int, index []int32) {
	first := len(index) - draws
	s.sample.Logits, s.sample.Rows = s.inputs.Logits+op.Ptr(4*first*s.vocab), int32(draws)
	s.Set.Sample(s.Stream, s.sample)
	s.write(s.accept.Starts, 0, int32(draws))
	s.write(s.accept.Index, index[first:]...)
	s.accept.Rows, s.accept.Samples = s.inputs.Rows, int32(draws)
	s.Set.Accept(s.Stream, s.accept)
}

func (s *Sequence) write(to op.Ptr, values ...int32) {
	s.Stream.Write(to, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values)))
}

func (s *Sequence) words(from op.Ptr, n int) []uint32 {
	data := make([]byte, 4*n)
	s.Stream.Read(data, from)
	values := make([]uint32, n)
	for i := range values {
		values[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return values
}

func (s *Sequence) ints(from op.Ptr, n int) []int32 {
	values := make([]int32, n)
	for i, word := range s.words(from, n) {
		values[i] = int32(word)
	}
	return values
}

func (s *Sequence) floats(from op.Ptr, n int) []float32 {
	values := make([]float32, n)
	for i, word := range s.words(from, n) {
		values[i] = math.Float32frombits(word)
	}
	return values
}

// activations reads elements of the type that activations have.
func (s *Sequence) activations(from op.Ptr, n int) []float32 {
	if s.Act == op.F32 {
		return s.floats(from, n)
	}
	values := make([]float32, 0, n+1)
	for _, pair := range s.words(from, (n+1)/2) { // two of bf16, the first in the low half
		values = append(values, math.Float32frombits(pair<<16), math.Float32frombits(pair&0xffff0000))
	}
	return values[:n]
}
