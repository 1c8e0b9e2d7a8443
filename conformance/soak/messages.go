package soak

import (
	"fmt"

	"github.com/tidwall/gjson"
)

func messagesBody(q *question) map[string]any {
	body := map[string]any{"model": q.model, "max_tokens": q.tokens, "temperature": 0, "stream": q.stream, "messages": q.user()}
	set(body, q.think, map[string]any{"thinking": map[string]any{"type": "adaptive"}})
	set(body, q.tools, map[string]any{"tools": []map[string]any{{"name": "note", "input_schema": object}}})
	return body
}

// message reads a stream of Anthropic's API.
type message struct {
	*hearing
	block  string // that is open: its type; "" where none is
	signed bool   // the open block has its signature
	blocks int
	state  int
}

// States of a stream: its message begins, has blocks, has said why it ends, and ends.
const (
	fresh = iota
	begun
	reasoned
	over
)

func (g *message) more() bool { return g.state != over }

func (g *message) event(kind string, data gjson.Result) error {
	if err := expect(data, "type", kind); err != nil {
		return err
	}
	switch index := int(data.Get("index").Int()); {
	case kind == "ping" && g.state != fresh && g.state != over:
		return nil
	case kind == "message_start" && g.state == fresh:
		g.state = begun
		m := data.Get("message")
		return first(expect(m, "role", "assistant"), expect(m, "content.#", "0"), expect(m, "stop_reason", ""), g.named(m.Get("id").String()))
	case kind == "content_block_start" && g.state == begun && g.block == "" && index == g.blocks:
		return g.start(data.Get("content_block"))
	case kind == "content_block_delta" && g.block != "" && index == g.blocks:
		return g.delta(data.Get("delta"))
	case kind == "content_block_stop" && g.block != "" && index == g.blocks && (g.block == "thinking") == g.signed:
		g.block, g.signed = "", false
		g.blocks++
		return nil
	case kind == "message_delta" && g.state == begun && g.block == "":
		g.state = reasoned
		return first(g.messageEnd(data.Get("delta.stop_reason").String()), checkUsage(data.Get("usage"), "input_tokens", "output_tokens", ""))
	case kind == "message_stop" && g.state == reasoned:
		g.state = over
		return g.complete()
	}
	return fmt.Errorf("the event %s in state %d, with %q open, behind %d blocks", data.Raw, g.state, g.block, g.blocks)
}

// start takes the beginning of a block, which is empty.
func (g *message) start(b gjson.Result) error {
	switch g.block = b.Get("type").String(); g.block {
	case "thinking":
		return expect(b, "thinking", "")
	case "text":
		return expect(b, "text", "")
	case "tool_use":
		return first(expect(b, "input", "{}"), g.begins(0, len(g.got[0].calls), b.Get("name").String(), b.Get("id").String()))
	}
	return fmt.Errorf("a block %s", b.Raw)
}

// delta takes a piece of the open block. The signature of thoughts comes behind them.
func (g *message) delta(d gjson.Result) error {
	switch kind := d.Get("type").String(); {
	case kind == "thinking_delta" && g.block == "thinking" && !g.signed:
		return g.hear(0, thoughts, d.Get("thinking").String())
	case kind == "signature_delta" && g.block == "thinking" && !g.signed && d.Get("signature").String() != "":
		g.signed = true
		return nil
	case kind == "text_delta" && g.block == "text":
		return g.hear(0, text, d.Get("text").String())
	case kind == "input_json_delta" && g.block == "tool_use":
		return g.input(d.Get("partial_json").String())
	}
	return fmt.Errorf("the delta %s of a block of type %q", d.Raw, g.block)
}

// input takes a piece of a call. One that is cut before its arguments has none, which is written as an empty object.
func (g *message) input(piece string) error {
	n := len(g.got[0].calls) - 1
	if piece == "{}" && g.got[0].calls[n] == "" && !begins(piece, g.want[0].calls[n]) {
		return nil
	}
	return g.hear(0, call, piece)
}

func (h *hearing) messageEnd(word string) error {
	e, err := h.endOf(0, word, "end_turn", "tool_use", "max_tokens")
	return first(err, h.ended(0, e))
}

// message takes a whole answer.
func (h *hearing) message(body gjson.Result) error {
	err := first(expect(body, "type", "message"), h.named(body.Get("id").String()), checkUsage(body.Get("usage"), "input_tokens", "output_tokens", ""))
	for _, b := range body.Get("content").Array() {
		switch b.Get("type").String() {
		case "thinking":
			err = first(err, h.hear(0, thoughts, b.Get("thinking").String()))
		case "text":
			err = first(err, h.hear(0, text, b.Get("text").String()))
		default:
			err = first(err, h.begins(0, len(h.got[0].calls), b.Get("name").String(), b.Get("id").String()), h.hear(0, call, b.Get("input").Raw))
		}
	}
	return first(err, h.messageEnd(body.Get("stop_reason").String()), h.complete())
}
