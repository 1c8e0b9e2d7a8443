package engine

import (
	"fmt"
	"log/slog"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
	"github.com/atlas-inference/atlas/atlasrt/internal/sched"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// Config is what an engine runs, on what, and within what bounds. Zero means the default where one is named.
type Config struct {
	Device       device.Device // that runs the steps
	Set          Set           // the kernel set, a bundle.Set
	Model        model.Model   // whose weights are on the device
	ScratchBytes int64         // that one launch may use

	KVType    op.DType // of keys and values
	BlockSize int      // tokens of a cache block; DefaultBlockSize
	Blocks    int      // of the cache; see Plan

	MaxBatchTokens int // rows of a step; DefaultBatchTokens. The model's buffers must hold as many
	MaxSequences   int // running at once; DefaultSequences
	MaxOutputs     int // rows of a step whose logits are kept; MaxSequences·Draws, which is the least. Scored prompts advance by as many
	MaxContext     int // tokens of a prompt and its answer; the model's

	Draws   int           // tokens that a step may draw of one request: the next one, and one behind each draft; 1
	Drafter model.Drafter // makes the drafts; nil where Draws is 1

	Options
}

// Options are what whoever starts an engine may choose, whatever model it runs. Zero means the default where one is named.
type Options struct {
	MaxWaiting       int // requests that wait; DefaultWaiting
	MaxWaitingTokens int // prompt tokens that wait; DefaultWaitingTokens

	ChunkTokens     int  // most prompt tokens of one request in a step; as many as fit
	NoPrefixSharing bool // never takes a prompt from the cache
	CacheTokens     int  // that blocks hold or have held before cached ones give way to no fresh one; all
	NoOverlap       bool // waits for each step's tokens before the next is queued, even where the device could go on

	Graphs         GraphMode // which steps are recorded and replayed, where the device can; GraphsFullDecodeOnly
	GraphSizes     []int     // sequences that decode steps are rounded up to, larger ones are not recorded; up to MaxSequences in eighths
	CaptureAtStart bool      // records decode steps of all sizes in New, and not when they first come

	FixedDrafts bool    // every step makes Draws-1 drafts, and not as many as pay off
	ForceDrafts float32 // for measurements: drafts are right with this probability, whatever they are; see op.Accept. 0: where they are drawn

	Log *slog.Logger // told of steps that fail; nobody
}

// Set is what an engine launches besides its model.
type Set interface {
	op.Sampler
	op.Drafting
	Copy(op.Stream, op.Copy)
}

// Defaults of a Config.
const (
	DefaultBlockSize     = 16
	DefaultBatchTokens   = 512
	DefaultSequences     = 64
	DefaultWaiting       = 256
	DefaultWaitingTokens = 2 << 20
)

// complete fills in defaults and reports what cannot be.
func (c Config) complete() (Config, error) {
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	if c.Device == nil || c.Set == nil || c.Model == nil {
		return c, fmt.Errorf("engine: device, set and model must be given")
	}
	layout := c.Model.Layout()
	fill(&c.BlockSize, DefaultBlockSize)
	fill(&c.MaxBatchTokens, DefaultBatchTokens)
	fill(&c.Draws, 1)
	fill(&c.MaxSequences, min(DefaultSequences, c.MaxBatchTokens/max(c.Draws, 1)))
	c.MaxOutputs = max(c.MaxOutputs, c.MaxSequences*c.Draws)
	fill(&c.MaxContext, int(layout.MaxContext))
	fill(&c.MaxWaiting, DefaultWaiting)
	fill(&c.MaxWaitingTokens, DefaultWaitingTokens)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := need(c, layout).check(); err != nil {
		return c, err
	}
	if c.Blocks < 1 || c.MaxWaiting < 1 || c.MaxWaitingTokens < 1 || c.ChunkTokens < 0 || c.CacheTokens < 0 {
		return c, fmt.Errorf("engine: %d blocks, queue of %d requests and %d tokens, chunks of %d, %d cached tokens (must not be less than 1, 1, 1, 0, 0)",
			c.Blocks, c.MaxWaiting, c.MaxWaitingTokens, c.ChunkTokens, c.CacheTokens)
	}
	if (c.Draws > 1) != (c.Drafter != nil) {
		return c, fmt.Errorf("engine: %d draws, and a drafter is given: %t (a drafter is for more than one draw)", c.Draws, c.Drafter != nil)
	}
	if !(c.ForceDrafts >= 0 && c.ForceDrafts <= 1) {
		return c, fmt.Errorf("engine: drafts are right with a probability of %g (must be from 0 to 1)", c.ForceDrafts)
	}
	if c.Draws-1 > int(layout.Drafts) {
		return c, fmt.Errorf("engine: %d draws, and the model is made for %d drafts of a sequence (make it for one less than the draws)", c.Draws, layout.Drafts)
	}
	if _, _, err := c.Graphs.Recordings(); err != nil {
		return c, err
	}
	for _, n := range c.GraphSizes {
		if n < 1 || n > c.MaxSequences {
			return c, fmt.Errorf("decode steps of %d sequences cannot be recorded (set --graph-capture-sizes to sizes from 1 to --max-sequences, which is %d)", n, c.MaxSequences)
		}
	}
	if c.Blocks > mostBlocks(c.BlockSize) {
		return c, fmt.Errorf("engine: %d blocks of %d tokens (at most %d, for a slot's number has 31 bits)", c.Blocks, c.BlockSize, mostBlocks(c.BlockSize))
	}
	return c, nil
}

// need is the sizes of a config, without memory.
func need(c Config, layout model.Layout) Need {
	n := Need{Layout: layout, KVType: c.KVType, BlockSize: c.BlockSize,
		MaxContext: c.MaxContext, MaxSequences: c.MaxSequences, MaxBatchTokens: c.MaxBatchTokens, MaxOutputs: c.MaxOutputs, Draws: c.Draws}
	if c.Drafter != nil {
		n.Drafter = c.Drafter.Memory()
	}
	return n
}

// cacheSizes are those of the cache: as many slots of state as sequences run, where the model keeps any.
func (c Config) cacheSizes() cache.Sizes {
	return cache.Sizes{Blocks: c.Blocks, BlockSize: c.BlockSize, Slots: need(c, c.Model.Layout()).slots()}
}

func (c Config) limits() sched.Limits {
	return sched.Limits{
		BatchTokens: c.MaxBatchTokens, Sequences: c.MaxSequences, Draws: c.Draws, Outputs: c.MaxOutputs, Context: c.MaxContext,
		ChunkTokens: c.ChunkTokens, Waiting: c.MaxWaiting, WaitingTokens: c.MaxWaitingTokens,
	}
}
