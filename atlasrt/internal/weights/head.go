package weights

import (
	"bytes"
	"maps"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
)

// settleHead says in the configuration whether the embedding serves as head, by what the files hold, where the configuration does not know:
// where it says so and there is a head of its own, which counts then, as in transformers 5 (a copy of the embedding changes nothing), and
// where it has a text_config and says nothing around it.
func (f *folder) settleHead() error {
	head, own := f.find(headName + "weight")
	if f.config.nested != nil && !f.config.Has(tieName) {
		_, packed := f.find(headName + "weight_packed")
		f.tie(!own && !packed)
		return nil
	}
	embedding, ok := f.find(decoder + embeddingName)
	if tied, _ := f.config.values[tieName].(bool); !tied || !ok || !own {
		return nil
	}
	defer f.Release(embedding)
	defer f.Release(head)
	same := head.Type == embedding.Type && slices.Equal(head.Shape, embedding.Shape)
	err := mapping.Guard(func() error {
		same = same && bytes.Equal(head.Data, embedding.Data)
		return nil
	})
	if err != nil || same {
		return err
	}
	f.tie(false)
	f.notes = append(f.notes, "lm_head.weight differs from the embedding, though config.json has tie_word_embeddings: lm_head.weight is used")
	return nil
}

func (f *folder) tie(tied bool) {
	f.config.values = maps.Clone(f.config.values)
	f.config.values[tieName] = tied
}
