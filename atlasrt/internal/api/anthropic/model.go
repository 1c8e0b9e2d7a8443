package anthropic

import (
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// Model is one model of the list.
type Model struct {
	Type        string    `json:"type"`             // always "model"
	ID          string    `json:"id"`               // the name that requests give
	DisplayName string    `json:"display_name"`     // the same
	Created     time.Time `json:"created_at"`       // when it was first served
	Lifecycle   string    `json:"lifecycle"`        // always "active"
	MaxInput    int       `json:"max_input_tokens"` // tokens of a prompt
	MaxTokens   int       `json:"max_tokens"`       // of an answer
}

// NewModel describes a model whose prompts have at most context tokens together with their answers.
func NewModel(id string, created int64, context int) Model {
	return Model{"model", id, id, time.Unix(created, 0).UTC(), "active", context, context}
}

// Body is the JSON of one model.
func (m Model) Body() []byte { return api.AppendJSON(nil, m) }

// Page says which part of a list is asked for, as the query of a path says it. Each field may be empty.
type Page struct {
	After  string // the entry that the part comes behind
	Before string // the entry that the part comes before
	Limit  string // the most entries, from 1 to 1000; 20
}

// ModelsBody is the JSON of a part of a list of models. Errors are *api.Error.
func ModelsBody(models []Model, p Page) ([]byte, error) {
	limit, err := api.PageLimit(p.Limit, 20, 1000)
	if err != nil {
		return nil, err
	}
	for i := range models {
		switch models[i].ID {
		case p.After:
			return part(models[i+1:], limit, false), nil
		case p.Before:
			return part(models[:i], limit, true), nil
		}
	}
	if p.After != "" || p.Before != "" { // no such entry
		models = nil
	}
	return part(models, limit, false), nil
}

// part is the JSON of the first models, or of the last ones.
func part(models []Model, limit int, last bool) []byte {
	list := struct {
		Data  []Model `json:"data"`
		More  bool    `json:"has_more"`
		First *string `json:"first_id"`
		Last  *string `json:"last_id"`
	}{Data: []Model{}, More: len(models) > limit}
	n := min(limit, len(models))
	if last {
		models = models[len(models)-n:]
	}
	if list.Data = append(list.Data, models[:n]...); n > 0 {
		list.First, list.Last = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return api.AppendJSON(nil, list)
}

// CountBody is the JSON of a count of tokens.
func CountBody(tokens int) []byte {
	return api.AppendJSON(nil, struct {
		Tokens int `json:"input_tokens"`
	}{tokens})
}
