package openai

import (
	"strconv"
	"unicode/utf8"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// TokenizeRequest is the body of POST /tokenize, in the spelling of vLLM (prompt or messages) or of llama.cpp (content).
type TokenizeRequest struct {
	Model   string        // empty: the only one
	Text    string        // that is to be tokenised
	Chat    *chat.Request // in place of Text
	Special bool          // the text gets the tokens that the model begins texts with
	Strings bool          // the answer has token_strs
	Pieces  bool          // the answer's tokens are objects with id and piece
	Unknown int           // fields that are not known
}

// DecodeTokenize reads a tokenize request. Errors are *api.Error.
func DecodeTokenize(body []byte, limits api.Limits) (*TokenizeRequest, error) {
	f, err := readObject(body, chatRanges)
	if err != nil {
		return nil, err
	}
	r := &TokenizeRequest{Special: true}
	f.Text("model", &r.Model)
	_, conversation := f.Peek("messages")
	switch {
	case conversation:
		r.Chat, _ = f.conversation(limits)
	case f.Text("content", &r.Text):
		r.Special = false
	case !f.Text("prompt", &r.Text):
		f.Invalid("prompt", "is required, or messages, or content")
	}
	f.Bool("add_special_tokens", &r.Special)
	f.Bool("add_special", &r.Special)
	f.Bool("return_token_strs", &r.Strings)
	f.Bool("with_pieces", &r.Pieces)
	r.Unknown = f.Unknown()
	return r, f.Failure()
}

// TokenizeBody is the answer to a tokenize request: tokens, how many, and the context of the model. text gives the bytes of
// a token.
func TokenizeBody(r *TokenizeRequest, tokens []int32, context int, text func(int32) []byte) []byte {
	b := append([]byte(nil), `{"count":`...)
	b = strconv.AppendInt(b, int64(len(tokens)), 10)
	b = append(b, `,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(context), 10)
	b = append(b, `,"tokens":[`...)
	for i, id := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		if r.Pieces {
			b = append(b, `{"id":`...)
		}
		b = strconv.AppendInt(b, int64(id), 10)
		if r.Pieces {
			b = append(b, `,"piece":`...)
			b = append(appendPiece(b, text(id)), '}')
		}
	}
	b = append(b, ']')
	if r.Strings {
		names := make([]string, len(tokens))
		for i, id := range tokens {
			names[i] = visible(text(id))
		}
		b = append(b, `,"token_strs":`...)
		b = api.AppendJSON(b, names)
	}
	return append(b, '}')
}

// appendPiece appends a token's text, or an array of its bytes where they are no whole code points.
func appendPiece(b, text []byte) []byte {
	if utf8.Valid(text) {
		return jsontree.AppendString(b, string(text))
	}
	for i, c := range text {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return append(b, ']')
}

// DetokenizeRequest is the body of POST /detokenize.
type DetokenizeRequest struct {
	Model   string  // empty: the only one
	Tokens  []int32 // ids
	Unknown int     // fields that are not known
}

// DecodeDetokenize reads a detokenize request. Whether the model has the tokens is not known yet. Errors are *api.Error.
func DecodeDetokenize(body []byte) (*DetokenizeRequest, error) {
	f, err := readObject(body, nil)
	if err != nil {
		return nil, err
	}
	r := &DetokenizeRequest{}
	f.Text("model", &r.Model)
	if v := f.Take("tokens"); v == nil {
		f.Invalid("tokens", "is required")
	} else if l, ok := v.(jsontree.Array); !ok {
		f.WrongKind("tokens", "an array", v)
	} else {
		r.Tokens = f.Tokens("tokens", l)
	}
	r.Unknown = f.Unknown()
	return r, f.Failure()
}

// DetokenizeBody is the answer, under the names of both spellings.
func DetokenizeBody(text string) []byte {
	b := jsontree.AppendString([]byte(`{"prompt":`), text)
	b = append(b, `,"content":`...)
	return append(jsontree.AppendString(b, text), '}')
}

// RenderBody shows prompts as the model would get them: one, or several in an array. Notes say what of the form of their answers is not held;
// context is of the model.
func RenderBody(prompts []completion.Prompt, notes []string, context int) []byte {
	type rendered struct {
		Prompt   string   `json:"prompt"`
		Tokens   []int32  `json:"tokens"`
		Count    int      `json:"count"`
		Context  int      `json:"max_model_len"`
		Thinking bool     `json:"thinking"`
		NotHeld  []string `json:"not_held,omitempty"`
	}
	all := make([]rendered, len(prompts))
	for i, p := range prompts {
		all[i] = rendered{p.Text, p.Tokens, len(p.Tokens), context, p.Thinking, notes}
	}
	if len(all) == 1 {
		return api.AppendJSON(nil, all[0])
	}
	return api.AppendJSON(nil, all)
}

// TemplateBody is the answer of llama.cpp's POST /apply-template.
func TemplateBody(prompt string) []byte {
	return append(jsontree.AppendString([]byte(`{"prompt":`), prompt), '}')
}
