// Package instance brings a model to life: it opens a checkpoint, picks the kernels for this machine, plans memory before
// anything is loaded, and starts an engine. Commands differ only in what they do with the result.
package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Sizes bound what an instance serves at a time. Zero means the default, which depends on the model and the memory.
type Sizes struct {
	MaxContext     int      // tokens of one sequence
	MaxSequences   int      // at a time
	MaxBatchTokens int      // rows of one step
	Drafts         int      // that the checkpoint's head makes for one sequence in a step; zero is none
	DraftVocab     int      // ids below it are drafted, and those of added tokens; zero is all
	BlockSize      int      // tokens of a cache block
	Memory         int64    // bytes in all
	KVType         op.DType // element type of the cache

	DraftScheme op.Scheme // that matrices of the head are quantised to: SchemeF8 or SchemeNVFP4; zero is as they are stored

	KeepActivations bool // as they are, also where the checkpoint means them to be rounded
}

// Prepared is a checkpoint that fits its kernels, measured but not loaded.
type Prepared struct {
	Target     *Target            // kernels and device
	Checkpoint weights.Checkpoint // that is to be loaded
	Counter    *load.Counter      // bytes and tensors that the model takes
	Sizes      Sizes              // without zeros
	Layout     model.Layout       // of the model
	Scratch    int64              // bytes that one launch may use
	Bound      string             // what Sizes.Memory comes from, in words

	Progress func(done, total int64) // called while Load places weights, with their bytes; nil: nobody

	construct buildDrafting
	tap       *ops.Tap      // stands before the set
	counted   model.Model   // over tap and Counter: it can be queued, and not run
	drafter   model.Drafter // of counted; nil: nothing is drafted
	free      int64         // bytes of the device, before anything was taken
}

// Prepare measures a model on a target. What is missing or does not fit is one error.
func Prepare(t *Target, c weights.Checkpoint, s Sizes) (*Prepared, error) {
	p, err := counted(t, c, s)
	if err != nil {
		return nil, err
	}
	if err := p.fits(); err != nil {
		return nil, fmt.Errorf("%s: %w%s", t.Bundle.Hardware, err, p.withoutHead())
	}
	p.Layout = p.counted.Layout()
	fill(&p.Sizes.MaxContext, min(int(p.Layout.MaxContext), defaultContext))
	if err := p.bound(); err != nil {
		return nil, err
	}
	return p, p.measure()
}

// fits reports what of the checkpoint does not fit the model and its kernels.
func (p *Prepared) fits() error {
	return errors.Join(p.Counter.Err(), weights.Check(p.Checkpoint, p.Counter.Wants), leaveOut(p.Checkpoint, p.Counter.Wants))
}

// counted constructs a model over a counter.
func counted(t *Target, c weights.Checkpoint, s Sizes) (*Prepared, error) {
	n, err := networkOf(c.Config())
	if err != nil {
		return nil, err
	}
	construct := n.alone()
	if s.Drafts < 0 || s.Drafts > mostDrafts {
		return nil, fmt.Errorf("%d drafts of a sequence in a step (must be 0 … %d)", s.Drafts, mostDrafts)
	}
	if s.Drafts > 0 {
		tokens, err := draftable(c, s.DraftVocab)
		if err == nil {
			construct, err = n.drafting(tokens)
		}
		if err != nil {
			return nil, err
		}
	}
	stored := load.Stored(c, t.Set)
	if s.KeepActivations {
		stored = load.Unrounded(stored)
	}
	if s.Drafts > 0 && s.DraftScheme != 0 {
		stored = headStored(stored, s.DraftScheme)
	}
	p := &Prepared{Target: t, Checkpoint: c, Sizes: s, construct: construct, Counter: load.NewCounter(t.Set, stored)}
	fill(&p.Sizes.BlockSize, engine.DefaultBlockSize)
	fill(&p.Sizes.MaxBatchTokens, engine.DefaultBatchTokens)
	fill(&p.Sizes.MaxSequences, min(engine.DefaultSequences, p.Sizes.MaxBatchTokens/(1+s.Drafts)))
	p.tap = &ops.Tap{Set: t.Set}
	p.counted, p.drafter = construct(p.tap, p.Counter, p.limits())
	if s.Drafts > 0 && p.drafter == nil {
		return nil, noHead(c)
	}
	return p, nil
}

// Wants finds what a model reads from a checkpoint, also where it cannot be served; with its head where there are to be drafts. The error is
// that of the settings.
func Wants(t *Target, c weights.Checkpoint, drafts int) (*load.Counter, error) {
	p, err := counted(t, c, Sizes{Drafts: drafts})
	if err != nil {
		return nil, err
	}
	return p.Counter, nil
}

// defaultContext bounds the context that is planned for where nobody asks for one.
const defaultContext = 32768

func fill(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

func (p *Prepared) limits() model.Limits {
	return model.Limits{
		Rows: int32(p.Sizes.MaxBatchTokens), Chunks: int32(min(max(p.Sizes.MaxSequences, 1), mostChunks)), Drafts: int32(p.Sizes.Drafts),
		Activations: p.Target.Bundle.Activations,
	}
}

// memoryFlag is the Bound of sizes that were given.
const memoryFlag = "--memory"

// bound settles how much memory may be used.
func (p *Prepared) bound() error {
	free, total, limit := p.Target.memory()
	p.free = free
	if p.Target.Device == nil && p.Sizes.Memory == 0 {
		return nil // Plan says so
	}
	all := fmt.Sprintf("%s has %d in all", p.Target.Bundle.Hardware, total)
	p.Bound = memoryFlag
	if limit != "" {
		all = fmt.Sprintf("the memory limit of the control group is %d (%s)", total, limit)
	}
	if p.Sizes.Memory == 0 {
		p.Sizes.Memory = free / 10 * 9
		p.Bound = "nine tenths of what is free"
		if limit != "" {
			p.Bound = fmt.Sprintf("nine tenths of what the memory limit of the control group leaves free (%s)", limit)
		}
	}
	if p.Sizes.Memory > total {
		return fmt.Errorf("--memory allows %d bytes, and %s (set it to less)", p.Sizes.Memory, all)
	}
	return nil
}

// Plan divides the memory.
func (p *Prepared) Plan() (engine.Memory, error) {
	if p.Target.Device == nil && p.Sizes.Memory == 0 {
		return engine.Memory{}, fmt.Errorf("%s is not in this machine, so how much memory it has is not known (give it with --memory)", p.Target.Bundle.Hardware)
	}
	m, err := engine.Plan(p.Need())
	if errors.Is(err, engine.ErrNoRoom) && p.Bound != memoryFlag {
		err = fmt.Errorf("%w; what may be used is %s", err, p.Bound)
	}
	return m, err
}

// Need is what memory is planned for.
func (p *Prepared) Need() engine.Need {
	n := engine.Need{
		Layout: p.Layout, WeightBytes: p.Counter.Weights, ActivationBytes: p.Counter.Buffers, ScratchBytes: p.Scratch,
		MemoryBytes: p.Sizes.Memory, FreeBytes: p.free, KVType: p.Sizes.KVType, BlockSize: p.Sizes.BlockSize,
		MaxContext: p.Sizes.MaxContext, MaxSequences: p.Sizes.MaxSequences, MaxBatchTokens: p.Sizes.MaxBatchTokens,
		Draws: 1 + p.Sizes.Drafts,
	}
	if p.drafter != nil {
		n.Drafter = p.drafter.Memory()
	}
	return n
}

// Loaded is a model with its weights in place.
type Loaded struct {
	*Prepared
	Model   model.Model   // ready for an engine
	Drafter model.Drafter // that drafts for Model; nil: nothing is drafted
	loader  *load.Loader
}

// Load places the weights, until ctx ends.
func (p *Prepared) Load(ctx context.Context) (*Loaded, error) {
	if p.Target.Device == nil {
		return nil, fmt.Errorf("loading: no device of this machine is taken for %s", p.Target.Bundle.Hardware)
	}
	stream, err := p.Target.Device.Stream(packScratch)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	loader, err := load.NewLoader(ctx, p.Checkpoint, p.Target.Device, stream, p.Target.Set, p.Counter)
	if err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	if _, ok := p.Target.Device.(device.Overlapper); ok {
		second, err := p.Target.Device.Stream(packScratch)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("loading: %w", err), loader.Close())
		}
		defer second.Close()
		if err := loader.Overlap(second); err != nil {
			return nil, errors.Join(fmt.Errorf("loading: %w", err), loader.Close())
		}
	}
	loader.Progress, loader.Asides = p.Progress, p.asides()
	m, d := p.construct(p.Target.Set, loader, p.limits())
	if err := loader.Finish(); err != nil {
		return nil, errors.Join(fmt.Errorf("loading: %w%s", err, p.unknownHead()), loader.Close())
	}
	return &Loaded{Prepared: p, Model: m, Drafter: d, loader: loader}, nil
}

// packScratch is the scratch memory of a stream that packs weights.
const packScratch = 64 << 20

// Close gives the weights' memory back.
func (l *Loaded) Close() error { return l.loader.Close() }

// Stream makes a stream that any step of this model fits.
func (p *Prepared) Stream() (device.Stream, error) { return p.Target.Device.Stream(p.Scratch) }
