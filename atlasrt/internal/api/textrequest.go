package api

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/jinja"
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
	Echo    bool     // the answer begins with the prompt
	Score   bool     // max_tokens is 0: nothing is generated; Options.MaxTokens is 1
	Special bool     // texts get the tokens that the model begins texts with
}

// defaultTokens is how many tokens a completions request gets that does not say.
const defaultTokens = 16

// DecodeText reads a completions request; defaults are the sampling parameters where it gives none. Errors are *Error.
func DecodeText(body []byte, limits Limits, defaults sample.Params) (*TextRequest, error) {
	f, err := readObject(body)
	if err != nil {
		return nil, err
	}
	r := &TextRequest{Generation: f.generation(limits, defaults), Special: true}
	r.Prompts = f.prompts(limits)
	o := &r.Options
	o.MaxTokens = defaultTokens
	f.integer("max_tokens", &o.MaxTokens, 0, 1<<62)
	r.Score = o.MaxTokens == 0
	o.MaxTokens = max(o.MaxTokens, 1)
	f.minTokens(&r.Generation)
	f.boolean("echo", &r.Echo)
	f.boolean("add_special_tokens", &r.Special)
	f.integer("logprobs", &o.LogProbs, 0, 5)
	o.PromptLogProbs = r.Echo && o.LogProbs >= 0
	if o.PromptLogProbs && r.Stream && o.Choices > 1 {
		f.fail(Unsupported("n", "n must be 1 in a stream with echo and logprobs."))
	}
	f.refuse("suffix", isText(""))
	f.refuse("response_format", plainFormat)
	r.Unknown = f.unknown()
	return r, f.failure()
}

// prompts reads a string, strings, token ids, or lists of token ids.
func (f *fields) prompts(limits Limits) []Prompt {
	v := f.take("prompt")
	if s, ok := v.(jinja.Str); ok && s.Text() != "" {
		return []Prompt{{Text: s.Text()}}
	}
	l, ok := v.(*jinja.List)
	switch {
	case f.err != nil:
		return nil
	case !ok || len(l.Items()) == 0:
		f.invalid("prompt", "must be a text, an array of texts, or token ids, and must not be empty")
		return nil
	}
	if _, tokens := l.Items()[0].(jinja.Int); tokens {
		return []Prompt{{Tokens: f.tokens("prompt", l.Items(), limits.Vocab)}}
	}
	if len(l.Items()) > limits.Prompts {
		f.fail(TooMuch(LimitPrompts, "prompt", "prompt has %d entries, at most %d are allowed.", len(l.Items()), limits.Prompts))
		return nil
	}
	prompts := make([]Prompt, 0, len(l.Items()))
	for i, item := range l.Items() {
		switch item := item.(type) {
		case jinja.Str:
			prompts = append(prompts, Prompt{Text: item.Text()})
		case *jinja.List:
			prompts = append(prompts, Prompt{Tokens: f.tokens("prompt", item.Items(), limits.Vocab)})
		default:
			f.invalid("prompt", "must hold texts or arrays of token ids; entry %d is %s", i, kind(item))
			return nil
		}
		if p := prompts[i]; p.Text == "" && len(p.Tokens) == 0 {
			f.invalid("prompt", "must not hold an empty prompt; entry %d is one", i)
			return nil
		}
	}
	return prompts
}
