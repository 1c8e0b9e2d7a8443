package anthropic

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// blockKinds are the types of blocks that a place takes.
type blockKinds []string

// Types of blocks by place.
var (
	textBlocks      = blockKinds{"text"}
	userBlocks      = blockKinds{"text", "tool_result", "search_result"}
	assistantBlocks = blockKinds{"text", "tool_use", "thinking", "redacted_thinking"}
	resultBlocks    = blockKinds{"text", "search_result", "tool_reference", "image", "document"}
)

// read reads a text or blocks: texts go to text, blocks of other types to block.
func read(f *api.Fields, field string, text func(string), block func(kind string, b *api.Fields), kinds blockKinds) {
	switch v := f.Take(field).(type) {
	case nil:
	case jsontree.String:
		text(string(v))
	case jsontree.Array:
		for _, b := range f.Objects(field, v) {
			switch kind := b.Required("type"); {
			case b.Err() != nil:
			case !slices.Contains(kinds, kind):
				b.Fail(api.Unsupported(b.Path("type"), "%s is %q; the blocks that this server reads here are of type %s.", b.Path("type"), api.Clip(kind, 40), strings.Join(kinds, ", ")))
			case kind == "text":
				text(given(b, "text"))
			default:
				block(kind, b)
			}
		}
	default:
		f.WrongKind(field, "a string or an array of blocks", v)
	}
}

// given reads a text that must be there.
func given(f *api.Fields, field string) (text string) {
	if !f.Text(field, &text) {
		f.Invalid(field, "is required")
	}
	return text
}

// toolUse reads a call that the model made.
func toolUse(b *api.Fields) chat.ToolCall {
	call := chat.ToolCall{ID: b.Required("id"), Name: b.Required("name")}
	input := b.Dict("input")
	if input == nil {
		input = jsontree.NewObject()
	}
	call.Arguments = string(jsontree.Append(nil, input))
	return call
}

// toolResult reads what a call gave. The model is told where that is an error, and what of it cannot be read.
func toolResult(b *api.Fields) chat.Message {
	m := chat.Message{Role: "tool", ToolCallID: b.Required("tool_use_id")}
	var texts []string
	read(b, "content", func(text string) { texts = append(texts, text) }, func(kind string, inner *api.Fields) {
		switch kind {
		case "search_result":
			texts = append(texts, searchResult(inner))
		case "tool_reference":
			texts = append(texts, inner.Required("tool_name"))
		default:
			texts = append(texts, api.LeftOut(kind))
		}
	}, resultBlocks)
	m.Content.Text = join(texts...)
	failed := false
	if b.Bool("is_error", &failed); failed {
		m.Content.Text = strings.TrimSpace("Error: " + m.Content.Text)
	}
	return m
}

// searchResult reads a text that was found, below its title and where it is from.
func searchResult(b *api.Fields) string {
	texts := []string{given(b, "title"), given(b, "source")}
	read(b, "content", func(text string) { texts = append(texts, text) }, nil, textBlocks)
	return join(texts...)
}
