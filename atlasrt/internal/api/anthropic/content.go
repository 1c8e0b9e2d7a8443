package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// block is one content block of an answer.
type block struct {
	opened    bool
	kind      chat.EventKind // text, reasoning or a call
	index     int            // in the message, from 0
	call      int            // index of the call
	id, name  string         // of the call
	signature string         // of thoughts
	blank     bool           // no input of the call came yet
	text      []byte         // of a whole answer
}

// open appends the event that begins the block.
func (k *block) open(b []byte) []byte {
	b = k.place(b, "content_block_start")
	b = append(b, `,"content_block":`...)
	empty := *k
	empty.signature, empty.text = "", nil
	return api.EndEvent(empty.whole(b))
}

// delta appends an event with a piece of the block's content.
func (k *block) delta(b []byte, text string) []byte {
	switch k.kind {
	case chat.EventToolCall:
		return k.piece(b, "input_json_delta", "partial_json", text)
	case chat.EventReasoning:
		return k.piece(b, "thinking_delta", "thinking", text)
	}
	return k.piece(b, "text_delta", "text", text)
}

func (k *block) piece(b []byte, kind, field, text string) []byte {
	b = k.place(b, "content_block_delta")
	b = append(b, `,"delta":{"type":"`...)
	b = append(b, kind...)
	b = append(b, `","`...)
	b = append(b, field...)
	b = append(b, `":`...)
	b = jsontree.AppendString(b, text)
	return api.EndEvent(append(b, '}'))
}

// place appends the beginning of an event of the block.
func (k *block) place(b []byte, kind string) []byte {
	b = api.AppendEvent(b, kind)
	b = append(b, `,"index":`...)
	return strconv.AppendInt(b, int64(k.index), 10)
}

// whole appends the block as JSON.
func (k *block) whole(b []byte) []byte {
	switch k.kind {
	case chat.EventToolCall:
		b = append(b, `{"type":"tool_use","id":`...)
		b = jsontree.AppendString(b, k.id)
		b = append(b, `,"name":`...)
		b = jsontree.AppendString(b, k.name)
		b = append(b, `,"input":`...)
		b = appendInput(b, k.text)
	case chat.EventReasoning:
		b = append(b, `{"type":"thinking","thinking":`...)
		b = jsontree.AppendString(b, string(k.text))
		b = append(b, `,"signature":`...)
		b = jsontree.AppendString(b, k.signature)
	default:
		b = append(b, `{"type":"text","text":`...)
		b = jsontree.AppendString(b, string(k.text))
	}
	return append(b, '}')
}

// appendInput appends the object that a call's text is.
func appendInput(b, text []byte) []byte {
	switch trimmed := bytes.Trim(text, space); {
	case len(trimmed) == 0:
		return append(b, "{}"...)
	case trimmed[0] == '{' && json.Valid(trimmed):
		return append(b, trimmed...)
	}
	b = append(b, `{"`+chat.BrokenArguments+`":`...)
	b = jsontree.AppendString(b, string(text))
	return append(b, '}')
}

// space is what JSON has between values.
const space = " \t\r\n"

func blank(text string) bool { return strings.Trim(text, space) == "" }

// signature is what thoughts are signed with. Clients send it back and this server believes them, so that it only has to look
// like one: it always has the same length and tells nothing.
func signature(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.StdEncoding.EncodeToString(sum[:])
}
