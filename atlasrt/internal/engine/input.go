package engine

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// input is one array of a step, made of 32-bit words. How much memory steps take, what is sent and what kernels point at
// follow from its row in stepInputs: a further array is a further row.
type input struct {
	name  string
	words func(*shape) int           // how many; equal shapes give equal numbers
	fill  func(to []int32, b *batch) // writes every word, also for rows and sequences that only round a step up
	field func(*launches) *op.Ptr    // what is to point at it
}

// inputs are the arrays of a step, in the order in which they lie in memory, each at a multiple of 64 bytes.
//
// Early ones are sent before the forward pass is queued. Late ones are read by sampling alone and may depend on the tokens of
// the step before: they are written behind the forward pass, and made while it runs. In a step whose tasks need none they hold
// padding alone, and are sent with the early ones.
type inputs struct{ early, late []input }

// stepInputs lists the arrays of a step that makes so many draws of a sequence at most. Tokens come first, for op.Resolve replaces
// references among them. Then come those whose sizes depend on rows and outputs alone: recorded pieces read no others, and find them at one
// place whatever sequences a step has. Slots of states are at the end where the model keeps any, and what drafts need where there may be some.
func stepInputs(layout model.Layout, draws int) inputs {
	rows := func(s *shape) int { return s.rows }
	outputs := func(s *shape) int { return s.outputs }
	sequences := func(s *shape) int { return s.seqs }
	samples := func(s *shape) int { return s.samples }
	edits := func(s *shape) int { return s.edits }
	maskRows := func(s *shape) int {
		if s.masks == 0 {
			return 0
		}
		return s.samples
	}
	masks := func(s *shape) int { return s.masks * maskWords(layout.Vocab) }
	in := inputs{
		early: []input{
			{"tokens", rows, fillTokens, func(l *launches) *op.Ptr { return &l.forward.Tokens }},
			{"positions", rows, fillPositions, func(l *launches) *op.Ptr { return &l.forward.Positions }},
			{"slots", rows, fillSlots, func(l *launches) *op.Ptr { return &l.forward.Slots }},
			{"index", outputs, fillIndex, func(l *launches) *op.Ptr { return &l.forward.Index }},
			{"seed", func(s *shape) int { return 2 * s.samples }, fillSeeds, func(l *launches) *op.Ptr { return &l.sample.Seed }},
			{"starts", func(s *shape) int { return s.seqs + 1 }, fillStarts, func(l *launches) *op.Ptr { return &l.forward.Starts }},
			{"lengths", sequences, fillLengths, func(l *launches) *op.Ptr { return &l.forward.Lengths }},
			{"tables", func(s *shape) int { return s.seqs * s.maxBlocks }, fillTables, func(l *launches) *op.Ptr { return &l.forward.Tables }},
			{"temperature", samples, fillTemperatures, func(l *launches) *op.Ptr { return &l.sample.Temperature }},
			{"top_p", samples, fillTopP, func(l *launches) *op.Ptr { return &l.sample.TopP }},
			{"min_p", samples, fillParams(func(p *sample.Params) float32 { return p.MinP }), func(l *launches) *op.Ptr { return &l.sample.MinP }},
			{"top_n_sigma", samples, fillParams(func(p *sample.Params) float32 { return p.TopNSigma }), func(l *launches) *op.Ptr { return &l.sample.TopNSigma }},
			{"min_entropy", samples, fillParams(func(p *sample.Params) float32 { return p.MinEntropy }), func(l *launches) *op.Ptr { return &l.sample.MinEntropy }},
			{"xtc_probability", samples, fillParams(func(p *sample.Params) float32 { return p.XTCProbability }), func(l *launches) *op.Ptr { return &l.sample.XTCProbability }},
			{"xtc_threshold", samples, fillParams(func(p *sample.Params) float32 { return p.XTCThreshold }), func(l *launches) *op.Ptr { return &l.sample.XTCThreshold }},
			{"top_k", samples, fillTopK, func(l *launches) *op.Ptr { return &l.sample.TopK }},
			{"position", samples, fillDrawPositions, func(l *launches) *op.Ptr { return &l.sample.Position }},
		},
		late: []input{
			{"edit_starts", func(s *shape) int { return s.samples + 1 }, fillEditStarts, func(l *launches) *op.Ptr { return &l.sample.EditStarts }},
			{"edit_token", edits, fillEditTokens, func(l *launches) *op.Ptr { return &l.sample.EditToken }},
			{"edit_bias", edits, fillEdits(func(e sample.Entries) []float32 { return e.Bias }), func(l *launches) *op.Ptr { return &l.sample.EditBias }},
			{"edit_factor", edits, fillEdits(func(e sample.Entries) []float32 { return e.Factor }), func(l *launches) *op.Ptr { return &l.sample.EditFactor }},
			{"edit_offset", edits, fillEdits(func(e sample.Entries) []float32 { return e.Offset }), func(l *launches) *op.Ptr { return &l.sample.EditOffset }},
			{"mask_row", maskRows, fillMaskRows, func(l *launches) *op.Ptr { return &l.sample.MaskRow }},
			{"mask", masks, fillMasks, func(l *launches) *op.Ptr { return &l.sample.Mask }},
		},
	}
	if layout.Keeps(model.PerSequence) {
		in.early = append(in.early, input{"states", sequences, fillStates, func(l *launches) *op.Ptr { return &l.forward.States }})
	}
	if draws > 1 {
		in.early = append(in.early,
			input{"follows", sequences, fillFollows, func(l *launches) *op.Ptr { return &l.advance.Follows }},
			input{"drafts", sequences, fillDrafts, func(l *launches) *op.Ptr { return &l.forward.Drafts }},
			input{"accepted", sequences, fillAccepted, func(l *launches) *op.Ptr { return &l.forward.Accepted }},
			input{"draw_starts", func(s *shape) int { return s.drawing + 1 }, fillDrawStarts, func(l *launches) *op.Ptr { return &l.accept.Starts }},
			input{"behind", rows, fillBehind, func(l *launches) *op.Ptr { return &l.drafting.Behind }},
			input{"draft_starts", func(s *shape) int { return s.seqs + 1 }, fillDraftStarts, func(l *launches) *op.Ptr { return &l.drafting.Starts }},
			input{"room", sequences, fillRoom, func(l *launches) *op.Ptr { return &l.passes.Room }})
	}
	return in
}

// batch is what the arrays of one step are filled from.
type batch struct {
	shape
	chunks  []sched.Chunk
	tasks   []*task // of the chunks
	sampled []*task // of the draws
	rows    []late  // of the draws; empty until the step is finished
	block   int     // tokens of a cache block
	pitch   int     // words from the tokens that the step before left for its chunks to the first drafts behind them, and so on
}

// launches is what a step queues: its arrays are filled for the batch, and the structs point at them.
type launches struct {
	batch
	resolve  op.Resolve // takes early inputs out of the mailbox, and tokens from the step before
	advance  op.Advance // moves sequences by what the step before counted
	forward  model.Inputs
	sample   op.Sample
	accept   op.Accept
	passes   op.DraftRows
	drafting model.Drafting
	results  op.Copy // puts tokens, and their counts, into the mailbox
}

// stage places arrays one behind the other from a word on, fills them and points at where they will lie on the device, base
// being that of the first word. It returns where they end.
func (l *launches) stage(arrays []input, words []int32, base op.Ptr, from int) (end int) {
	for i := range arrays {
		a := &arrays[i]
		n := a.words(&l.shape)
		if n > 0 {
			a.fill(words[from:from+n], &l.batch)
		}
		*a.field(l) = base + op.Ptr(4*from)
		from += aligned(n)
	}
	if l.masks == 0 {
		l.sample.Mask, l.sample.MaskRow = 0, 0
	}
	return from
}

// wordsOf is how many words arrays take in steps of a shape.
func wordsOf(arrays []input, s shape) (n int) {
	for _, a := range arrays {
		n += aligned(a.words(&s))
	}
	return n
}

// aligned rounds words up to 64 bytes.
func aligned(words int) int { return (words + 15) &^ 15 }
