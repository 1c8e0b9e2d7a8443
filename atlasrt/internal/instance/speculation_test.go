package instance

import (
	"runtime"
	"slices"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/golden"
	"github.com/atlas-inference/atlas/atlasrt/internal/recall"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Hybrid models, whose layers keep states, give the same tokens with drafts as without.
func TestDraftsOverModelsWithStates(t *testing.T) {
	for _, name := range []string{"qwen3_next", "qwen3_5", "qwen3"} {
		want := golden.Read(t, name)
		text := slices.Concat(want.Tokens, want.Greedy)
		for most := range 4 {
			d := host.New(0)
			set := oracle.New(op.F32)
			m := loaded(t, want.Checkpoint, d, set, model.Limits{Rows: 32, Drafts: int32(most), Activations: op.F32})
			c := engine.Config{Device: d, Set: set, Model: m, ScratchBytes: 1 << 20, KVType: op.F32, Blocks: 40, MaxBatchTokens: 32, MaxContext: 200, MaxSequences: 3,
				Draws: most + 1, Options: engine.Options{FixedDrafts: true, ChunkTokens: 5}}
			if most > 0 {
				c.Drafter = &recall.Drafter{Device: d, Text: text, Wrong: 5}
			}
			e, err := engine.New(c)
			if err != nil {
				t.Fatal(err)
			}
			request := engine.Request{Prompt: want.Tokens, MaxTokens: len(want.Greedy), Sampling: sample.Greedy(), LogProbs: -1}
			inbox, err := e.Submit(t.Context(), request, request)
			if err != nil {
				t.Fatal(err)
			}
			got := make([][]int32, 2)
			for event := range inbox.All() {
				if event.Err != nil {
					t.Fatal(event.Err)
				}
				got[event.Request] = append(got[event.Request], event.Token)
			}
			for _, tokens := range got {
				if !slices.Equal(tokens, want.Greedy) {
					t.Errorf("%s, %d drafts: got %v, want %v", name, most, tokens, want.Greedy)
				}
			}
			if s := e.Stats(); most > 0 && (s.Accepted == 0 || s.Accepted == s.Drafted) {
				t.Errorf("%s: %d of %d drafts were right: the test does not test", name, s.Accepted, s.Drafted)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			runtime.KeepAlive(d)
		}
	}
}

// What drafts take is what a plan with them has more than one without.
func TestDraftShare(t *testing.T) {
	config, err := weights.ParseConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
		"num_key_value_heads": 1, "intermediate_size": 96, "vocab_size": 300, "max_position_embeddings": 128}`))
	if err != nil {
		t.Fatal(err)
	}
	unlaunched := &ops.Tap{Set: oracle.New(op.F32), Each: func(op.Stream, any) bool { return true }}
	target := &Target{Device: host.New(1 << 30), Set: unlaunched, Bundle: &bundle.Bundle{Activations: op.F32}}
	c, err := Dummy(target, config, dummy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(target, c, Sizes{MaxContext: 64, MaxSequences: 2, MaxBatchTokens: 32, KVType: op.F32, Memory: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := p.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if share, err := p.DraftShare(plain); err != nil || share != (engine.Memory{}) {
		t.Errorf("without drafts: got %+v %v, want nothing", share, err)
	}
	p.Sizes.Drafts, p.drafter = 2, keeper{}
	m, err := p.Plan()
	if err != nil {
		t.Fatal(err)
	}
	share, err := p.DraftShare(m)
	if err != nil {
		t.Fatal(err)
	}
	if logits := int64(2 * 2 * 4 * p.Layout.Vocab); share.Logits != logits || share.Cache != int64(m.Tokens)*2*4*4*8 || share.Inputs <= 0 {
		t.Errorf("got %+v, want %d for logits and %d tokens in the cache", share, logits, m.Tokens)
	}
	if share.Total != m.Total-plain.Total {
		t.Errorf("drafts take %d of %d bytes, and without them there are %d", share.Total, m.Total, plain.Total)
	}
}

// keeper is a drafter with keys and values of four heads of 8.
type keeper struct{ *recall.Drafter }

func (keeper) Memory() []model.Memory { return []model.Memory{model.KeysAndValues(4, 8)} }
