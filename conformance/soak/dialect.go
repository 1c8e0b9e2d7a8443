package soak

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// dialect is an API.
type dialect struct {
	path   string
	body   func(*question) map[string]any
	events func(*hearing) grammar             // reads a stream
	whole  func(*hearing, gjson.Result) error // reads a whole answer
}

// grammar reads the events of an answer, in the only order that they may have. More tells whether further ones must come.
type grammar interface {
	event(kind string, data gjson.Result) error
	more() bool
}

// dialects are those that a server speaks.
var dialects = map[string]dialect{
	"chat": {"/v1/chat/completions", chatBody, func(h *hearing) grammar {
		return &chunks{hearing: h, object: "chat.completion.chunk", piece: h.chatPiece}
	}, (*hearing).chat},
	"completions": {"/v1/completions", completionsBody, func(h *hearing) grammar { return &chunks{hearing: h, object: "text_completion", piece: h.textPiece} }, (*hearing).completion},
	"messages":    {"/v1/messages", messagesBody, func(h *hearing) grammar { return &message{hearing: h} }, (*hearing).message},
	"responses":   {"/v1/responses", responsesBody, func(h *hearing) grammar { return &response{hearing: h} }, (*hearing).response},
}

// question is what is asked, and what its answer says.
type question struct {
	model   string
	texts   []string // one, or prompts of completions
	prompts []string // the same as a model gets them; nil: as they are
	choices int      // to each
	tokens  int      // at most
	stream  bool
	tools   bool // the answer may call note
	think   bool
	keep    bool // the answer may be stored
	want    []wanted
}

// set sets fields where a condition holds.
func set(body map[string]any, where bool, fields map[string]any) {
	for name, value := range fields {
		if where {
			body[name] = value
		}
	}
}

// user is the one message of a conversation.
func (q *question) user() []map[string]any {
	return []map[string]any{{"role": "user", "content": q.texts[0]}}
}

// object is the schema of the tool's arguments.
var object = map[string]any{"type": "object", "properties": map[string]any{"word": map[string]any{"type": "string"}}}

// expect checks that a field is the one value that it may be.
func expect(data gjson.Result, path, want string) error {
	if got := data.Get(path); got.String() != want {
		return fmt.Errorf("%s is %s, want %s", path, got.Raw, want)
	}
	return nil
}

// first is the first error that there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
