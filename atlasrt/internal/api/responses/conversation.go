package responses

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/store"
)

// Converse makes the conversation of a request: instructions, what came earlier, and the input. Find looks up what the input refers to.
// Errors are *api.Error.
func (r *Request) Converse(earlier []store.Item, find func(id string) (store.Item, bool), limits api.Limits) error {
	if n := len(earlier) + len(r.entries); n > limits.Messages {
		return api.TooMuch(api.LimitMessages, "input", "The conversation has %d items, at most %d are allowed.", n, limits.Messages)
	}
	c := &conversation{}
	if r.instructions != "" {
		c.add(chat.Message{Role: "system", Content: chat.Content{Text: r.instructions}}, "instructions")
	}
	for _, item := range earlier {
		if err := r.read(c, entry{"previous_response_id", kept(item)}); err != nil {
			return err
		}
	}
	for i := range r.entries {
		e := &r.entries[i]
		if err := r.dereference(e, find); err != nil {
			return err
		}
		if err := r.read(c, *e); err != nil {
			return err
		}
	}
	if c.seal(); len(c.messages) == 0 {
		return api.Invalid("input", "input is required: a text, or an array of at least one item.")
	}
	r.Chat.Messages, r.Chat.Names = c.messages, c.places
	r.Skipped += c.skipped
	return nil
}

func (r *Request) read(c *conversation, e entry) error {
	f := r.root.Inner(e.object, e.place)
	c.item(f, e.place)
	return f.Failure()
}

// dereference puts the item that an entry refers to in its place.
func (r *Request) dereference(e *entry, find func(id string) (store.Item, bool)) error {
	f := r.root.Inner(e.object, e.place)
	if kindOf(f) != "item_reference" {
		return nil
	}
	id := f.Required("id")
	if err := f.Failure(); err != nil {
		return err
	}
	item, ok := find(id)
	if !ok {
		return &api.Error{Kind: api.KindUnknownPath, Field: f.Path("id"), Final: true,
			Message: "There is no item " + quote(id) + " here; it was never stored, was deleted, or is too old. Send the item itself."}
	}
	e.object = kept(item)
	return nil
}

// kept is an item that was stored.
func kept(item store.Item) *jsontree.Object {
	v, err := jsontree.Decode(item.JSON, jsontree.Limits{})
	object, ok := v.(*jsontree.Object)
	if err != nil || !ok {
		panic(fmt.Sprintf("BUG: a stored item is no object: %v", err))
	}
	return object
}

// prefixes are how ids begin, by the type of the item.
var prefixes = map[string]string{
	"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "function_call_output": "fco_", "custom_tool_call": "ctc_", "custom_tool_call_output": "ctco_",
}

// normal is an item of the input as it is kept and listed: with an id and a type, and with the parts of its text. Number counts the
// items of one answer, whose id nobody can guess.
func normal(given *jsontree.Object, id string, number int) store.Item {
	o := jsontree.NewObject()
	kind, role := textOf(given, "type"), textOf(given, "role")
	if kind == "" {
		kind = "message"
	}
	name := textOf(given, "id")
	if name == "" {
		prefix := prefixes[kind]
		if prefix == "" {
			prefix = "item_"
		}
		name = fmt.Sprintf("%s%si%04x", prefix, id, number)
	}
	o.Set("id", jsontree.String(name))
	o.Set("type", jsontree.String(kind))
	for key, value := range given.All() {
		if s, text := value.(jsontree.String); text && kind == "message" && key == "content" {
			value = jsontree.Array{part(role, s)}
		}
		if key != "id" && key != "type" {
			o.Set(key, value)
		}
	}
	if _, ok := o.Get("status"); !ok && kind != "reasoning" {
		o.Set("status", jsontree.String("completed"))
	}
	return store.Item{ID: name, JSON: jsontree.Append(nil, o)}
}

// part is a text as the content of a message has it.
func part(role string, text jsontree.String) *jsontree.Object {
	o := jsontree.NewObject()
	if role != "assistant" {
		o.Set("type", jsontree.String("input_text"))
		o.Set("text", text)
		return o
	}
	o.Set("type", jsontree.String("output_text"))
	o.Set("text", text)
	o.Set("annotations", jsontree.Array{})
	return o
}

func textOf(o *jsontree.Object, key string) string {
	v, _ := o.Get(key)
	s, _ := v.(jsontree.String)
	return string(s)
}
