package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Need is what memory is planned for.
type Need struct {
	Layout                                     model.Layout   // of the model
	WeightBytes, ActivationBytes, ScratchBytes int64          // of the model; scratch is that of one launch
	MemoryBytes                                int64          // that may be used in all
	FreeBytes                                  int64          // on the device; 0 where that does not matter
	KVType                                     op.DType       // element type of the cache
	BlockSize                                  int            // tokens
	MaxContext, MaxSequences, MaxBatchTokens   int            // as in Config
	MaxOutputs                                 int            // rows of a step whose logits are kept; 0 is MaxSequences·Draws
	Draws                                      int            // as in Config; 0 is 1
	Drafter                                    []model.Memory // of the drafter, beside the layout's
}

// Memory is where memory goes, in bytes, to the last one that the engine asks for.
type Memory struct {
	Weights, Activations, Scratch int64 // as needed
	Inputs                        int64 // of one step; mailboxes are the host's memory
	Logits                        int64 // of one step
	Cache                         int64 // Blocks·BlockBytes
	States                        int64 // Slots·SlotBytes
	Total, Limit                  int64 // what is planned, and what may be used
	BlockBytes                    int64 // of a block in all layers
	SlotBytes                     int64 // of a sequence's state in all layers
	Blocks                        int   // never more than MaxSequences full contexts take
	Slots                         int   // MaxSequences where layers keep states, or none
	Tokens                        int   // that the cache holds
}

// ErrNoRoom is wrapped by what Plan says where not even one sequence fits.
var ErrNoRoom = errors.New("too little memory")

// Plan divides memory: what is left beside weights, buffers, one step and the states of MaxSequences sequences goes to the cache, up to
// MaxSequences sequences of MaxContext tokens. A state has one size whatever a sequence's length, and without it a sequence cannot run; so
// there are as many slots as sequences may run at once. Where not even one sequence of MaxContext tokens fits, the error says which flag to
// change to what.
func Plan(n Need) (Memory, error) {
	if err := n.check(); err != nil {
		return Memory{}, err
	}
	m, ok := n.divide()
	if !ok {
		return Memory{}, n.doesNotFit()
	}
	return m, nil
}

// check reports sizes that no memory could serve.
func (n Need) check() error {
	switch n.KVType {
	case op.F32, op.BF16:
	default:
		return fmt.Errorf("keys and values cannot be kept as %s (set --kv-type to f32 or bf16)", n.KVType)
	}
	const most = 1 << 24 // keeps every product below far from the ends of an int64
	draws := max(n.draws(), 1)
	rows := "" // why a step has more than one at least
	if draws > 1 {
		rows = fmt.Sprintf(", or lower --num-drafts: a step computes %d rows of each sequence", draws)
	}
	sizes := []struct {
		name         string
		value        int
		least, limit int
		by           string // what else sets the bounds
	}{
		{"--block-size", n.BlockSize, 1, 1 << 12, ""},
		{"--max-context", n.MaxContext, 1, int(min(n.Layout.MaxContext, most)), ""},
		{"the number of draws", n.draws(), 1, MaxDrafts + 1, ""},
		{"--max-batch-tokens", n.MaxBatchTokens, draws, 1 << 20, rows},
		{"--max-sequences", n.MaxSequences, 1, min(n.MaxBatchTokens/draws, 1<<16), ", or raise --max-batch-tokens"},
		{"the number of logit rows", n.outputs(), 1, n.MaxBatchTokens, ""},
	}
	for _, s := range sizes {
		if s.value < s.least || s.value > s.limit {
			return fmt.Errorf("%s is %d (set it to %d … %d%s)", s.name, s.value, s.least, s.limit, s.by)
		}
	}
	if n.Layout.Vocab < 1 || n.Layout.Vocab > most {
		return fmt.Errorf("a vocabulary of %d tokens (must be 1 … %d)", n.Layout.Vocab, most)
	}
	if keeps(n.Drafter, model.PerSequence) && !n.Layout.Keeps(model.PerSequence) {
		return errors.New("the drafter keeps states of sequences, for which the model has no slots")
	}
	for i, memory := range n.memory() {
		if memory.Kind != model.PerToken && memory.Kind != model.PerSequence {
			return fmt.Errorf("layer %d keeps memory of kind %d, for which there is no pool", i, memory.Kind)
		}
		for _, a := range memory.Arrays {
			if a.Elements < 1 || a.Elements > most {
				return fmt.Errorf("layer %d keeps arrays of %d elements", i, a.Elements)
			}
		}
	}
	return nil
}

// divide reports false where not even one full context fits.
func (n Need) divide() (Memory, bool) {
	m := Memory{Weights: n.WeightBytes, Activations: n.ActivationBytes, Scratch: n.ScratchBytes, Limit: n.MemoryBytes}
	m.Inputs = n.stepBytes()
	m.Logits = n.logitBytes()
	m.BlockBytes, m.SlotBytes, m.Slots = n.blockBytes(), n.slotBytes(), n.slots()
	m.States = n.stateBytes()
	fixed := m.Weights + m.Activations + m.Scratch + m.Inputs + m.Logits + m.States
	one := int64(divideUp(n.MaxContext, n.BlockSize))
	want := min(one*int64(n.MaxSequences), int64(mostBlocks(n.BlockSize)))
	if m.BlockBytes > 0 {
		want = min(want, (n.MemoryBytes-fixed)/m.BlockBytes)
	}
	if n.MemoryBytes < fixed || want < one {
		return m, false
	}
	m.Blocks = int(want)
	m.Tokens = m.Blocks * n.BlockSize
	m.Cache = want * m.BlockBytes
	m.Total = fixed + m.Cache
	return m, true
}

// least is the smallest limit that holds one full context.
func (n Need) least() int64 {
	one := int64(divideUp(n.MaxContext, n.BlockSize))
	return n.WeightBytes + n.ActivationBytes + n.ScratchBytes + n.stepBytes() + n.logitBytes() + n.stateBytes() + one*n.blockBytes()
}

// doesNotFit says what is missing and every single change that would make it fit, or where none does, two that do together.
func (n Need) doesNotFit() error {
	fits := func(change func(*Need)) bool {
		c := n
		change(&c)
		_, ok := c.divide()
		return ok
	}
	var ways []string
	// Smaller sizes never need more, so the largest that fits is found by halving.
	if size := sort.Search(n.MaxContext, func(less int) bool { return fits(func(c *Need) { c.MaxContext -= less }) }); size < n.MaxContext {
		ways = append(ways, fmt.Sprintf("--max-context %d", n.MaxContext-size))
	}
	if size := sort.Search(n.MaxSequences, func(less int) bool { return fits(func(c *Need) { c.MaxSequences -= less }) }); size < n.MaxSequences {
		ways = append(ways, fmt.Sprintf("--max-sequences %d", n.MaxSequences-size))
	}
	if op.BF16.Bytes() < n.KVType.Bytes() && fits(func(c *Need) { c.KVType = op.BF16 }) {
		ways = append(ways, "--kv-type bf16")
	}
	least := n.least()
	if n.FreeBytes == 0 || least <= n.FreeBytes {
		ways = append(ways, fmt.Sprintf("--memory %dMiB", (least+1<<20-1)>>20))
	}
	if len(ways) == 0 {
		alone := func(less int) bool {
			return fits(func(c *Need) { c.MaxSequences, c.MaxContext = 1, c.MaxContext-less })
		}
		if size := sort.Search(n.MaxContext, alone); size < n.MaxContext {
			ways = append(ways, fmt.Sprintf("--max-sequences 1 with --max-context %d", n.MaxContext-size))
		}
	}
	if len(ways) == 0 {
		ways = append(ways, fmt.Sprintf("a smaller model or fewer bits: the device has %d free", n.FreeBytes))
	}
	states := ""
	if n.slots() > 0 {
		states = fmt.Sprintf("states of %d sequences %d, ", n.slots(), n.stateBytes())
	}
	return fmt.Errorf("%w: one sequence of %d tokens takes %d bytes with the model, and %d may be used: weights %d, activations %d, scratch %d, "+
		"step %d, logits %d, %scache %d (change to %s)", ErrNoRoom, n.MaxContext, least, n.MemoryBytes, n.WeightBytes, n.ActivationBytes, n.ScratchBytes,
		n.stepBytes(), n.logitBytes(), states, int64(divideUp(n.MaxContext, n.BlockSize))*n.blockBytes(), strings.Join(ways, ", or "))
}

// blockBytes is what one block takes in all layers.
func (n Need) blockBytes() int64 { return n.bytesOf(model.PerToken) * int64(n.BlockSize) }

// slotBytes is what the state of one sequence takes in all layers.
func (n Need) slotBytes() int64 { return n.bytesOf(model.PerSequence) }

// slots is how many sequences have a state.
func (n Need) slots() int {
	if !keeps(n.memory(), model.PerSequence) {
		return 0
	}
	return n.MaxSequences
}

// memory is what the model keeps, and behind it what the drafter does.
func (n Need) memory() []model.Memory { return slices.Concat(n.Layout.Memory, n.Drafter) }

// keeps tells whether any of memory is of a kind.
func keeps(memory []model.Memory, kind model.Kind) bool {
	return slices.ContainsFunc(memory, func(m model.Memory) bool { return m.Kind == kind })
}

// stateBytes is what the states of all sequences take.
func (n Need) stateBytes() int64 { return int64(n.slots()) * n.slotBytes() }

// bytesOf is what all layers keep of a kind, for one token or one sequence.
func (n Need) bytesOf(kind model.Kind) (bytes int64) {
	for _, memory := range n.memory() {
		if memory.Kind != kind {
			continue
		}
		for _, a := range memory.Arrays {
			bytes += arrayBytes(a, n.KVType)
		}
	}
	return bytes
}

// arrayBytes is what an array takes for one token, or for one sequence.
func arrayBytes(a model.Array, kvType op.DType) int64 {
	return a.Elements * cmp.Or(a.Type, kvType).Bytes()
}

// whole is the largest step.
func (n Need) whole() shape {
	edits := editsOf(n.Layout.Vocab, n.MaxContext)
	return shape{rows: n.MaxBatchTokens, seqs: n.MaxSequences, outputs: n.outputs(), drawing: n.MaxSequences, samples: n.MaxSequences * n.draws(),
		maxBlocks: divideUp(n.MaxContext, n.BlockSize), edits: n.MaxSequences * (edits + (n.draws()-1)*min(edits, mostAhead)),
		masks: n.MaxSequences * n.draws()}
}

// stepBytes is what the inputs of a step take, and what it leaves for the host and the next step.
func (n Need) stepBytes() int64 {
	in, s := stepInputs(n.Layout, n.draws()), n.whole()
	return 4 * int64(wordsOf(in.early, s)+wordsOf(in.late, s)+n.draftWords()+n.resultWords())
}

// draftWords is what a step leaves for its drafter, in front of what the host reads: last and passes of runner.
func (n Need) draftWords() int {
	if n.draws() == 1 {
		return 0
	}
	last, passes := 1, 3*(n.draws()-2)
	return n.MaxSequences * (last + passes)
}

// resultWords is the most that the host reads of a step: next, counts and sampled of runner.
func (n Need) resultWords() int {
	if n.draws() > 1 {
		return n.MaxSequences * (n.draws() + 1 + n.draws())
	}
	return n.MaxSequences
}

// sentBytes is the most that comes through a mailbox: all inputs of a step that edits and masks nothing.
func (n Need) sentBytes() int64 {
	in, s := stepInputs(n.Layout, n.draws()), n.whole()
	s.edits, s.masks = 0, 0
	return 4 * int64(wordsOf(in.early, s)+wordsOf(in.late, s))
}

func (n Need) logitBytes() int64 { return 4 * int64(n.Layout.Vocab) * int64(n.outputs()) }

func (n Need) outputs() int { return max(n.MaxOutputs, n.MaxSequences*n.draws()) }

func (n Need) draws() int { return cmp.Or(n.Draws, 1) }

// editsOf bounds how many logits one sequence edits.
func editsOf(vocab int32, context int) int {
	return min(int(vocab), context+MaxBiases+MaxEnds+MaxBadWords)
}

// mostBlocks is how many blocks have slots that an int32 can number.
func mostBlocks(blockSize int) int { return math.MaxInt32 / blockSize }

func divideUp(a, b int) int { return (a + b - 1) / b }
