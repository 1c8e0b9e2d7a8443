package soak

import (
	"fmt"

	"github.com/tidwall/gjson"
)

func (q *question) openAI() map[string]any {
	body := map[string]any{"model": q.model, "max_tokens": q.tokens, "temperature": 0, "stream": q.stream, "n": q.choices}
	set(body, q.stream, map[string]any{"stream_options": map[string]any{"include_usage": true}})
	return body
}

func chatBody(q *question) map[string]any {
	body := q.openAI()
	body["messages"] = q.user()
	set(body, q.think, map[string]any{"reasoning_effort": "medium"})
	set(body, q.tools, map[string]any{"tools": []map[string]any{{"type": "function", "function": map[string]any{"name": "note", "parameters": object}}}})
	return body
}

func completionsBody(q *question) map[string]any {
	body := q.openAI()
	if body["prompt"] = q.texts; q.prompts != nil {
		body["prompt"] = q.prompts
	}
	return body
}

// chunks reads a stream of OpenAI's older APIs.
type chunks struct {
	*hearing
	object  string
	piece   func(choice int, c gjson.Result) error
	counted bool // the usage has come
	done    bool
}

func (g *chunks) more() bool { return !g.done }

func (g *chunks) event(kind string, data gjson.Result) error {
	if kind == "" && data.Raw == "[DONE]" && g.counted && !g.done {
		g.done = true
		return g.complete()
	}
	if kind != "" || g.counted {
		return fmt.Errorf("an event of kind %q, behind the usage %v", kind, g.counted)
	}
	if err := first(expect(data, "object", g.object), g.named(data.Get("id").String())); err != nil {
		return err
	}
	list, usage := data.Get("choices"), data.Get("usage")
	if len(list.Array()) == 0 {
		g.counted = true
		return first(g.complete(), checkUsage(usage, "prompt_tokens", "completion_tokens", "total_tokens"))
	}
	if !usage.Exists() || usage.Type != gjson.Null || len(list.Array()) != 1 {
		return fmt.Errorf("usage %q beside choices %s", usage.Raw, list.Raw)
	}
	c := list.Get("0")
	choice := int(c.Get("index").Int())
	if choice < 0 || choice >= len(g.want) {
		return fmt.Errorf("choice %d of %d", choice, len(g.want))
	}
	return g.piece(choice, c)
}

// checkUsage checks that counts of an answer are there: prompt, answer and their sum.
func checkUsage(usage gjson.Result, prompt, answer, sum string) error {
	p, a := usage.Get(prompt).Int(), usage.Get(answer).Int()
	if p <= 0 || a <= 0 || sum != "" && usage.Get(sum).Int() != p+a {
		return fmt.Errorf("usage %s", usage.Raw)
	}
	return nil
}

// chatPiece takes a chunk's choice: first its role alone, then one thing each, and in the end why it ended.
func (h *hearing) chatPiece(choice int, c gjson.Result) error {
	delta, finish := c.Get("delta"), c.Get("finish_reason")
	fields := keys(delta)
	if finish.Type == gjson.String && fields == "" {
		return h.chatEnd(choice, finish.String())
	}
	if finish.Type != gjson.Null {
		return fmt.Errorf("an end with %s", c.Raw)
	}
	if !h.roles[choice] {
		if h.roles[choice] = true; fields == "role content " {
			return first(expect(delta, "role", "assistant"), expect(delta, "content", ""))
		}
		return fmt.Errorf("the first of a choice is %s", c.Raw)
	}
	switch fields {
	case "content ":
		return h.hear(choice, text, delta.Get("content").String())
	case "reasoning_content reasoning ", "reasoning_content ":
		return h.hear(choice, thoughts, delta.Get("reasoning_content").String())
	case "tool_calls ":
		return h.chatCall(choice, delta.Get("tool_calls"))
	}
	return fmt.Errorf("a delta %s", delta.Raw)
}

// chatCall takes a piece of a call: first what is called, then the arguments.
func (h *hearing) chatCall(choice int, list gjson.Result) error {
	c := list.Get("0")
	index, name := int(c.Get("index").Int()), c.Get("function.name")
	if len(list.Array()) != 1 {
		return fmt.Errorf("calls %s", list.Raw)
	}
	if name.Exists() {
		return first(expect(c, "type", "function"), expect(c, "function.arguments", ""), h.begins(choice, index, name.String(), c.Get("id").String()))
	}
	if index != len(h.got[choice].calls)-1 || c.Get("id").Exists() {
		return fmt.Errorf("a piece %s behind %d calls", c.Raw, len(h.got[choice].calls))
	}
	return h.hear(choice, call, c.Get("function.arguments").String())
}

func (h *hearing) chatEnd(choice int, word string) error {
	e, err := h.endOf(choice, word, "stop", "tool_calls", "length")
	return first(err, h.ended(choice, e))
}

// textPiece takes a choice of a completion's chunk: its last text comes with why it ended.
func (h *hearing) textPiece(choice int, c gjson.Result) error {
	err := h.hear(choice, text, c.Get("text").String())
	if finish := c.Get("finish_reason"); err == nil && finish.Type != gjson.Null {
		return h.chatEnd(choice, finish.String())
	}
	return err
}

// chat takes a whole answer.
func (h *hearing) chat(body gjson.Result) error {
	err := first(expect(body, "object", "chat.completion"), h.named(body.Get("id").String()), checkUsage(body.Get("usage"), "prompt_tokens", "completion_tokens", "total_tokens"))
	for i, c := range body.Get("choices").Array() {
		m := c.Get("message")
		err = first(err, expect(m, "role", "assistant"), h.hear(i, thoughts, m.Get("reasoning_content").String()), h.hear(i, text, m.Get("content").String()))
		for n, one := range m.Get("tool_calls").Array() {
			err = first(err, h.begins(i, n, one.Get("function.name").String(), one.Get("id").String()), h.hear(i, call, one.Get("function.arguments").String()))
		}
		err = first(err, h.chatEnd(i, c.Get("finish_reason").String()))
	}
	return first(err, h.complete())
}

// completion takes a whole answer.
func (h *hearing) completion(body gjson.Result) error {
	err := first(expect(body, "object", "text_completion"), h.named(body.Get("id").String()), checkUsage(body.Get("usage"), "prompt_tokens", "completion_tokens", "total_tokens"))
	for i, c := range body.Get("choices").Array() {
		err = first(err, h.textPiece(i, c))
	}
	return first(err, h.complete())
}

// keys are the names of an object's fields, with a space behind each.
func keys(object gjson.Result) (names string) {
	object.ForEach(func(key, _ gjson.Result) bool {
		names += key.String() + " "
		return true
	})
	return names
}
