package openai

import "github.com/atlas-inference/atlas/atlasrt/internal/api"

// Model is one model of the list.
type Model struct {
	ID         string `json:"id"`            // the name that requests give
	Object     string `json:"object"`        // always "model"
	Created    int64  `json:"created"`       // seconds since 1970
	Owner      string `json:"owned_by"`      // always "atlas"
	MaxContext int    `json:"max_model_len"` // tokens of a prompt and its answer
}

// NewModel describes a model.
func NewModel(id string, created int64, context int) Model {
	return Model{ID: id, Object: "model", Created: created, Owner: "atlas", MaxContext: context}
}

// Body is the JSON of one model.
func (m Model) Body() []byte { return api.AppendJSON(nil, m) }

// ModelsBody is the JSON of a list of models.
func ModelsBody(models []Model) []byte {
	return api.AppendJSON(nil, struct {
		Object string  `json:"object"`
		Data   []Model `json:"data"`
	}{"list", models})
}
