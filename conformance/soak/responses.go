package soak

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

func responsesBody(q *question) map[string]any {
	body := map[string]any{"model": q.model, "max_output_tokens": q.tokens, "temperature": 0, "stream": q.stream, "store": q.keep, "input": q.texts[0]}
	set(body, q.think, map[string]any{"reasoning": map[string]any{"effort": "medium"}})
	set(body, q.tools, map[string]any{"tools": []map[string]any{{"type": "function", "name": "note", "parameters": object}}})
	return body
}

// response reads a stream of OpenAI's newer API.
type response struct {
	*hearing
	sequence int
	items    []string // those that have ended, as JSON
	item     string   // id of the one that is open
	part     part     // that it is
	text     string   // of it so far
	after    string   // the last event but a delta
	over     bool
}

// follows tells which event may come behind which, deltas left out.
var follows = map[string]string{
	"response.created":                       "",
	"response.in_progress":                   "response.created",
	"response.output_item.added":             "response.in_progress response.output_item.done",
	"response.content_part.added":            "response.output_item.added",
	"response.reasoning_text.done":           "response.content_part.added",
	"response.output_text.done":              "response.content_part.added",
	"response.content_part.done":             "response.reasoning_text.done response.output_text.done",
	"response.function_call_arguments.done":  "response.output_item.added",
	"response.output_item.done":              "response.content_part.done response.function_call_arguments.done",
	"response.completed":                     "response.output_item.done",
	"response.incomplete":                    "response.output_item.done",
	"response.reasoning_text.delta":          "response.content_part.added",
	"response.output_text.delta":             "response.content_part.added",
	"response.function_call_arguments.delta": "response.output_item.added",
}

func (g *response) more() bool { return !g.over }

func (g *response) event(kind string, data gjson.Result) error {
	before, known := follows[kind]
	if err := first(expect(data, "type", kind), expect(data, "sequence_number", fmt.Sprint(g.sequence))); err != nil {
		return err
	}
	if !known || g.over || g.after == "" && before != "" || g.after != "" && !strings.Contains(" "+before+" ", " "+g.after+" ") {
		return fmt.Errorf("%s comes behind %q", kind, g.after)
	}
	g.sequence++
	if strings.HasSuffix(kind, ".delta") {
		piece := data.Get("delta").String()
		g.text += piece
		return first(g.same(kind, data), g.hear(0, g.part, piece))
	}
	g.after = kind
	switch kind {
	case "response.created", "response.in_progress":
		return first(g.named(data.Get("response.id").String()), expect(data, "response.status", "in_progress"), expect(data, "response.output.#", "0"))
	case "response.output_item.added":
		return g.added(data)
	case "response.content_part.added":
		return first(g.same(kind, data), expect(data, "part.text", ""))
	case "response.reasoning_text.done", "response.output_text.done":
		return first(g.same(kind, data), expect(data, "text", g.text))
	case "response.function_call_arguments.done":
		return first(g.same(kind, data), expect(data, "arguments", g.text))
	case "response.content_part.done":
		return first(g.same(kind, data), expect(data, "part.text", g.text))
	case "response.output_item.done":
		item := data.Get("item")
		g.items = append(g.items, item.Raw)
		return first(expect(item, "id", g.item), expect(item, textPaths[g.part], g.text))
	}
	g.over = true
	r := data.Get("response")
	if got, want := r.Get("output").Raw, "["+strings.Join(g.items, ",")+"]"; got != want {
		return fmt.Errorf("the output is %s, its items were %s", got, want)
	}
	return first(expect(r, "status", strings.TrimPrefix(kind, "response.")), g.responseEnd(r))
}

// textPaths are where items have their texts.
var textPaths = map[part]string{thoughts: "content.0.text", text: "content.0.text", call: "arguments"}

// partOf is the part that a type of items, or the name of an event, is about.
func partOf(name string) part {
	switch {
	case strings.Contains(name, "reasoning"):
		return thoughts
	case strings.Contains(name, "function_call"):
		return call
	}
	return text
}

// added takes the beginning of an item.
func (g *response) added(data gjson.Result) error {
	item := data.Get("item")
	g.item, g.part, g.text = item.Get("id").String(), partOf(item.Get("type").String()), ""
	err := first(expect(data, "output_index", fmt.Sprint(len(g.items))), expect(item, "status", "in_progress"), expect(item, textPaths[g.part], ""))
	if g.part == call {
		return first(err, g.begins(0, len(g.got[0].calls), item.Get("name").String(), item.Get("call_id").String()))
	}
	return err
}

// same checks that an event is about the item that is open.
func (g *response) same(kind string, data gjson.Result) error {
	err := first(expect(data, "item_id", g.item), expect(data, "output_index", fmt.Sprint(len(g.items))))
	if !strings.Contains(kind, "content_part") && partOf(kind) != g.part {
		return fmt.Errorf("%s in an item of part %d", kind, g.part)
	}
	return err
}

// responseEnd takes a response that has ended.
func (h *hearing) responseEnd(r gjson.Result) error {
	e := whole
	if r.Get("status").String() == "incomplete" {
		e = cut
	} else if err := expect(r, "status", "completed"); err != nil {
		return err
	}
	return first(h.named(r.Get("id").String()), checkUsage(r.Get("usage"), "input_tokens", "output_tokens", "total_tokens"), h.ended(0, e), h.complete())
}

// response takes a whole answer.
func (h *hearing) response(body gjson.Result) (err error) {
	for _, item := range body.Get("output").Array() {
		p := partOf(item.Get("type").String())
		if p == call {
			err = first(err, h.begins(0, len(h.got[0].calls), item.Get("name").String(), item.Get("call_id").String()))
		}
		err = first(err, h.hear(0, p, item.Get(textPaths[p]).String()))
	}
	return first(err, expect(body, "object", "response"), h.responseEnd(body))
}
