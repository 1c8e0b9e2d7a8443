package instance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/model"
	"github.com/atlas-inference/atlas/atlasrt/model/nn"
	"github.com/atlas-inference/atlas/atlasrt/model/qwen3next"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// buildDrafting makes a model and what drafts for it, which is nil where the source has no head that does.
type buildDrafting func(ops bundle.Set, src model.Source, limits model.Limits) (model.Model, model.Drafter)

// draftsFlag asks for drafts.
const draftsFlag = "--speculative"

// Bounds of sizes for which memory is counted before they are checked against each other.
const (
	mostDrafts = 15
	mostChunks = 1 << 16
)

// head is the head of a family that drafts for its models.
type head struct {
	check func() error                          // says why the settings allow no drafts
	build func(draftable []int32) buildDrafting // drafts the tokens of draftable alone, or all where it is nil
}

// drafts is a family whose models may have a head that drafts: see serves.
func drafts[C interface {
	nn.Family
	CheckHead() error
}](
	read func(file string, data []byte, modelType string) (C, error), construct func(nn.Ops, model.Source, C, model.Limits) model.Model,
	withHead func(nn.DraftOps, model.Source, C, model.Limits, []int32) (model.Model, model.Drafter), types ...string,
) family {
	return family{types, func(file string, data []byte, modelType string) (network, error) {
		config, err := read(file, data, modelType)
		n := newNetwork(file, modelType, config, construct)
		n.head = &head{config.CheckHead, func(draftable []int32) buildDrafting {
			return func(ops bundle.Set, src model.Source, limits model.Limits) (model.Model, model.Drafter) {
				return withHead(ops, src, config, limits, draftable)
			}
		}}
		return n, err
	}}
}

// alone makes the model and no drafter.
func (n network) alone() buildDrafting {
	return func(ops bundle.Set, src model.Source, limits model.Limits) (model.Model, model.Drafter) {
		return n.build(ops, src, limits), nil
	}
}

// drafting makes the model with its head, which drafts the tokens of draftable alone, or all where it is nil.
func (n network) drafting(draftable []int32) (buildDrafting, error) {
	if n.head == nil {
		return nil, fmt.Errorf("%s: no head that drafts is known for model_type %q (leave %s out)", n.file, n.modelType, draftsFlag)
	}
	if err := n.head.check(); err != nil {
		return nil, fmt.Errorf("%s: %w (leave %s out)", n.file, err, draftsFlag)
	}
	return n.head.build(draftable), nil
}

// noHead says that a checkpoint has no head that drafts, or which tensor its head lacks before all others.
func noHead(c weights.Checkpoint) error {
	file := c.Config().File()
	if slices.ContainsFunc(c.Unused(), isOfHead) {
		return fmt.Errorf("%s: the checkpoint's MTP head lacks %s, so that it cannot draft (leave %s out)", file, qwen3next.HeadTensor, draftsFlag)
	}
	return fmt.Errorf("%s: the checkpoint has no MTP head (tensors %s…), which would draft (leave %s out)", file, headPrefix, draftsFlag)
}

// isOfHead tells whether a tensor is one of a head's.
func isOfHead(name string) bool { return strings.HasPrefix(name, headPrefix) }

// serveAlone is what to do where a head is not as it must be, and the model is.
const serveAlone = "\n(the model can be served without its MTP head: leave " + draftsFlag + " out)"

// withoutHead is serveAlone where a model that does not fit would fit without its head, and nothing where it would not or has none.
func (p *Prepared) withoutHead() string {
	if p.drafter == nil {
		return ""
	}
	s := p.Sizes
	s.Drafts, s.DraftVocab, s.DraftScheme = 0, 0, 0
	if alone, err := counted(p.Target, p.Checkpoint, s); err != nil || alone.fits() != nil {
		return ""
	}
	return serveAlone
}

// unknownHead is serveAlone where tensors of a head were not asked for while it was loaded.
func (p *Prepared) unknownHead() string {
	if p.drafter == nil || !slices.ContainsFunc(p.Checkpoint.Unused(), isOfHead) {
		return ""
	}
	return serveAlone
}

// draftable lists the tokens below a number, which are the most frequent ones of vocabularies that were made by merging, and those that were
// added to the vocabulary: they end answers, and begin thoughts and calls. It is nil where that is all.
func draftable(c weights.Checkpoint, below int) ([]int32, error) {
	config := c.Config().Text()
	vocabulary := config.IntOr("vocab_size", 0)
	if below == 0 || below >= vocabulary {
		return nil, config.Err()
	}
	if below < 0 {
		return nil, fmt.Errorf("--mtp-vocab is %d (set it to 1 or more; 0 is all tokens)", below)
	}
	assets, err := c.Assets()
	if err != nil {
		return nil, err
	}
	t, err := openTokenizer(c, assets)
	if err != nil {
		return nil, fmt.Errorf("which tokens are control tokens, for --mtp-vocab: %w", err)
	}
	var ids []int32
	for id := range int32(vocabulary) {
		if eos, ok := t.EOS(); id < int32(below) || t.IsAdded(id) || ok && id == eos {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// headStored is stored for a head whose matrices, and whose copy of the output matrix, are quantised to a scheme as they are loaded.
func headStored(stored func(string) (load.Storage, bool), scheme op.Scheme) func(string) (load.Storage, bool) {
	return load.Requantised(stored, func(name string) load.Another {
		switch {
		case name == headPrefix+"lm_head.weight":
			for _, of := range []string{name, "lm_head.weight", "model.embed_tokens.weight"} {
				if _, ok := stored(of); ok {
					return load.Another{Of: of, Scheme: scheme}
				}
			}
		case isOfHead(name) && weights.EndsIn(name, "_proj.weight", ".fc.weight"):
			return load.Another{Of: name, Scheme: scheme}
		}
		return load.Another{}
	})
}

// hasHead reports whether settings say that a model has a head that drafts.
func hasHead(c *weights.Config) bool {
	c = c.Fresh().Text()
	return max(c.IntOr("mtp_num_hidden_layers", 0), c.IntOr("num_nextn_predict_layers", 0)) > 0
}
