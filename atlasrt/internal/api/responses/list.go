package responses

import (
	"slices"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// Page is which items of a list are asked for, as the query of a path says it. Each field may be empty.
type Page struct {
	Order string // asc or desc, which is usual: the last first
	After string // the id of the item that is in front of the page
	Limit string // the most items, from 1 to 100; 20
}

// PageBody lists items, which are given from the first to the last. Errors are *api.Error.
func PageBody(items []store.Item, p Page) ([]byte, error) {
	limit, err := api.PageLimit(p.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	switch p.Order {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return nil, api.Invalid("order", "order must be asc or desc.")
	}
	if p.After != "" {
		at := slices.IndexFunc(items, func(item store.Item) bool { return item.ID == p.After })
		if at < 0 {
			return nil, api.Invalid("after", "after must be the id of an item of this list, which %s is not.", quote(p.After))
		}
		items = items[at+1:]
	}
	more := len(items) > limit
	items = items[:min(len(items), limit)]
	first, last := jsontree.Value(jsontree.Null{}), jsontree.Value(jsontree.Null{})
	if n := len(items); n > 0 {
		first, last = jsontree.String(items[0].ID), jsontree.String(items[n-1].ID)
	}
	b := []byte(`{"object":"list","data":[`)
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item.JSON...)
	}
	b = append(b, `],"first_id":`...)
	b = jsontree.Append(b, first)
	b = append(b, `,"last_id":`...)
	b = jsontree.Append(b, last)
	b = append(b, `,"has_more":`...)
	b = strconv.AppendBool(b, more)
	return append(b, '}'), nil
}

// InBackground tells whether an answer, as its Body is, was asked for in the background.
func InBackground(body []byte) bool {
	v, err := jsontree.Decode(body, jsontree.Limits{})
	object, ok := v.(*jsontree.Object)
	if err != nil || !ok {
		return false
	}
	background, _ := object.Get("background")
	return api.IsTrue(background)
}

// DeletedBody says that an answer was deleted.
func DeletedBody(id string) []byte {
	b := jsontree.AppendString([]byte(`{"id":`), id)
	return append(b, `,"object":"response","deleted":true}`...)
}

// CountBody says how many tokens a request has.
func CountBody(tokens int) []byte {
	b := strconv.AppendInt([]byte(`{"object":"response.input_tokens","input_tokens":`), int64(tokens), 10)
	return append(b, '}')
}
