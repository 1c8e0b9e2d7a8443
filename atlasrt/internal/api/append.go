package api

import (
	"bytes"
	"encoding/json"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// AppendJSON appends what encoding/json makes of a value of a dialect, which always works. Texts are written as jsontree writes
// them: no browser reads them as HTML.
func AppendJSON[T any](b []byte, v T) []byte {
	text := bytes.NewBuffer(b)
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("BUG: " + err.Error())
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// AppendOptional appends a text, or null where it is empty.
func AppendOptional(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	return jsontree.AppendString(b, text)
}

// AppendEvent appends the beginning of a typed event of a stream, up to its type. Further fields and EndEvent follow.
func AppendEvent(b []byte, kind string) []byte {
	b = append(b, "event: "...)
	b = append(b, kind...)
	b = append(b, "\ndata: {\"type\":\""...)
	b = append(b, kind...)
	return append(b, '"')
}

// EndEvent appends the end of a typed event.
func EndEvent(b []byte) []byte { return append(b, "}\n\n"...) }

// AppendComment appends a comment to a stream of events, which clients of any dialect pass over.
func AppendComment(b []byte) []byte { return append(b, ": ping\n\n"...) }
