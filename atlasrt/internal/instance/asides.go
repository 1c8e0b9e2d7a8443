package instance

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// headPrefix begins the names of the tensors of a head that drafts.
const headPrefix = "mtp."

// asides are the parts that checkpoints of a model_type may have beside the language model, which is served without them.
func asides(kind string) []weights.Aside {
	const (
		head  = "they guess later tokens, which is not asked for"
		tower = "images are not served"
	)
	switch {
	case kind == "qwen3_next":
		return []weights.Aside{{Prefix: headPrefix, What: head}}
	case strings.HasPrefix(kind, "qwen3_5"):
		return []weights.Aside{{Prefix: headPrefix, What: head}, {Prefix: "model.visual.", What: tower}, {Prefix: "visual.", What: tower}}
	}
	return nil
}

func (p *Prepared) asides() []weights.Aside {
	all := asides(p.Checkpoint.Config().StringOr("model_type", ""))
	if p.drafter == nil {
		return all
	}
	return slices.DeleteFunc(all, func(a weights.Aside) bool { return a.Prefix == headPrefix })
}
