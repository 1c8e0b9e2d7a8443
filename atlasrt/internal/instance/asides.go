package instance

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// asides are the parts that checkpoints of a model_type may have beside the language model, which is served without them.
func asides(kind string) []weights.Aside {
	const (
		head  = "they guess later tokens, which is not asked for"
		tower = "images are not served"
	)
	switch {
	case kind == "qwen3_next":
		return []weights.Aside{{Prefix: "mtp.", What: head}}
	case strings.HasPrefix(kind, "qwen3_5"):
		return []weights.Aside{{Prefix: "mtp.", What: head}, {Prefix: "model.visual.", What: tower}, {Prefix: "visual.", What: tower}}
	}
	return nil
}

func (p *Prepared) asides() []weights.Aside {
	return asides(p.Checkpoint.Config().StringOr("model_type", ""))
}
