package instance

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/cpu"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/solo"
)

// cachedContexts is how many contexts of tokens a CPU's cache keeps before it takes memory that nobody has used.
const cachedContexts = 2

// cacheTokens bounds the cache where the device has memory only from its first use on.
func (l *Loaded) cacheTokens(asked int) int {
	if _, lazy := l.Target.Device.(*cpu.Device); lazy && asked == 0 {
		return cachedContexts * l.Sizes.MaxContext
	}
	return asked
}

// Start gives the loaded model an engine, with the cache that the plan has room for. Where CacheTokens is 0, a CPU's cache keeps cachedContexts
// contexts.
func (l *Loaded) Start(o engine.Options) (*engine.Engine, error) {
	memory, err := l.Plan()
	if err != nil {
		return nil, err
	}
	o.CacheTokens = l.cacheTokens(o.CacheTokens)
	return engine.New(engine.Config{
		Device: l.Target.Device, Set: l.Target.Set, Model: l.Model, ScratchBytes: l.Scratch,
		KVType: l.Sizes.KVType, BlockSize: l.Sizes.BlockSize, Blocks: memory.Blocks,
		MaxBatchTokens: l.Sizes.MaxBatchTokens, MaxSequences: l.Sizes.MaxSequences, MaxContext: l.Sizes.MaxContext,
		Draws: l.Sizes.Drafts + 1, Drafter: l.Drafter, Options: o,
	})
}

// Direct runs single sequences of up to context tokens through the model, for comparing it with references.
func (l *Loaded) Direct(context int) (*engine.Direct, error) {
	return engine.NewDirect(engine.Config{
		Device: l.Target.Device, Set: l.Target.Set, Model: l.Model, ScratchBytes: l.Scratch,
		KVType: l.Sizes.KVType, BlockSize: l.Sizes.BlockSize, Blocks: context/l.Sizes.BlockSize + 1,
		MaxBatchTokens: l.Sizes.MaxBatchTokens, MaxContext: context, MaxSequences: 1,
	})
}

// Solo runs one sequence of up to context tokens through the model and the head that drafts for it, for comparing both with references. The
// stream is the caller's.
func (l *Loaded) Solo(stream device.Stream, context int) (*solo.Sequence, error) {
	m, hidden := l.Model.(solo.Decoder)
	head, scores := l.Drafter.(solo.Head)
	if !hidden || !scores {
		return nil, fmt.Errorf("the model was loaded without a head that drafts (load it with drafts)")
	}
	return solo.New(solo.Config{
		Device: l.Target.Device, Stream: stream, Set: l.Target.Set, Model: m, Head: head, Act: l.Target.Bundle.Activations, KVType: l.Sizes.KVType,
		Rows: l.Sizes.MaxBatchTokens, Drafts: l.Sizes.Drafts, Context: context, BlockSize: l.Sizes.BlockSize,
	})
}
