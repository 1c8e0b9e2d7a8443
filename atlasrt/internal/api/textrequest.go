package api

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Prompt is a text, or its tokens where Tokens is not nil.
type Prompt struct {
	Text   string
	Tokens []int32
}

// TextRequest is the body of POST /v1/completions.
type TextRequest struct {
	Generation
	Prompts []Prompt // none is empty
	Special bool     // texts get the tokens that the model begins texts with
}

// defaultTokens is how many tokens a completions request gets that does not say.
const defaultTokens = 16

// DecodeText reads a completions request; defaults are the sampling parameters where it gives none. Errors are *Error.
func DecodeText(body []byte, limits Limits, defaults sample.Params) (*TextRequest, error) {
	f, err := readObject(body, textRoute)
	if err != nil {
		return nil, err
	}
	r := &TextRequest{Generation: f.generation(limits, defaults), Special: true}
	r.Prompts = f.prompts(limits)
	o := &r.Options
	f.textTokens(r)
	f.otherName("max_completion_tokens", "max_tokens") // of the chat route
	f.minTokens(&r.Generation)
	f.boolean("echo", &o.Echo)
	f.boolean("add_special_tokens", &r.Special)
	if v := f.take("logprobs"); v != nil && !isFalse(v) { // false is the chat route's way to ask for none
		f.integer("logprobs", &o.LogProbs)
	}
	o.PromptLogProbs = o.Echo && o.LogProbs >= 0
	if o.PromptLogProbs && r.Stream && o.Choices > 1 {
		f.fail(Unsupported("n", "n must be 1 in a stream with echo and logprobs."))
	}
	f.refuse("suffix", isText(""))
	f.refuse("response_format", plainFormat)
	r.Unknown = f.unknown()
	return r, f.failure()
}

// textTokens reads max_tokens, which is 0 where the prompt is only scored.
func (f *fields) textTokens(r *TextRequest) {
	n := defaultTokens
	given := f.integer("max_tokens", &n)
	if v := f.take("n_predict"); v != nil && isNumber(-1)(v) && !given {
		r.Options.MaxTokens = 0 // as many as the context leaves
		return
	}
	f.predict(&n, given)
	r.Options.Score = n == 0
	r.Options.MaxTokens = max(n, 1)
}

// prompts reads a string, strings, token ids, or lists of token ids.
func (f *fields) prompts(limits Limits) []Prompt {
	v := f.take("prompt")
	if s, ok := v.(jsontree.String); ok && s != "" {
		return []Prompt{{Text: string(s)}}
	}
	l, ok := v.(jsontree.Array)
	switch {
	case f.err != nil:
		return nil
	case !ok || len(l) == 0:
		f.invalid("prompt", "must be a text, an array of texts, or token ids, and must not be empty")
		return nil
	}
	if _, tokens := l[0].(jsontree.Number); tokens {
		return []Prompt{{Tokens: f.tokens("prompt", l, limits.Vocab)}}
	}
	if len(l) > limits.Prompts {
		f.fail(TooMuch(LimitPrompts, "prompt", "prompt has %d entries, at most %d are allowed.", len(l), limits.Prompts))
		return nil
	}
	prompts := make([]Prompt, 0, len(l))
	for i, item := range l {
		switch item := item.(type) {
		case jsontree.String:
			prompts = append(prompts, Prompt{Text: string(item)})
		case jsontree.Array:
			prompts = append(prompts, Prompt{Tokens: f.tokens("prompt", item, limits.Vocab)})
		default:
			f.invalid("prompt", "must hold texts or arrays of token ids; entry %d is %s", i, item.Kind())
			return nil
		}
		if p := prompts[i]; p.Text == "" && len(p.Tokens) == 0 {
			f.invalid("prompt", "must not hold an empty prompt; entry %d is one", i)
			return nil
		}
	}
	return prompts
}
