package openai

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// defaultTokens is how many tokens a completions request gets that does not say.
const defaultTokens = 16

// Decode implements api.Dialect.
func (Text) Decode(body []byte, limits api.Limits) (*api.Request, error) {
	f, err := readObject(body, textRanges)
	if err != nil {
		return nil, err
	}
	r := f.generation(limits)
	r.Special = true
	r.Prompts = f.prompts(limits)
	o := &r.Options
	f.textTokens(o)
	f.OtherName("max_completion_tokens", "max_tokens") // of the chat route
	f.minTokens(o)
	f.Bool("echo", &o.Echo)
	f.Bool("add_special_tokens", &r.Special)
	if v := f.Take("logprobs"); v != nil && !api.IsFalse(v) { // false is the chat route's way to ask for none
		f.Integer("logprobs", &o.LogProbs)
	}
	o.PromptLogProbs = o.Echo && o.LogProbs >= 0
	if o.PromptLogProbs && r.Stream && o.Choices > 1 {
		f.Fail(api.Unsupported("n", "n must be 1 in a stream with echo and logprobs."))
	}
	f.Refuse("suffix", api.IsText(""))
	for _, name := range budgets {
		f.Refuse(name, api.IsNumber(-1))
	}
	f.Refuse("think", api.Never)
	f.ofChats()
	r.Unknown = f.Unknown()
	return r, f.Failure()
}

// ofChats refuses what only conversations have.
func (f fields) ofChats() {
	const chats = "/v1/chat/completions"
	f.RefuseOf(chats, api.Empty, "messages", "tools", "functions", "documents")
	f.RefuseOf(chats, api.AnyOf(api.IsText("auto"), api.IsText("none")), "tool_choice", "function_call")
	f.RefuseOf(chats, api.EmptyObject, "chat_template_kwargs")
	f.RefuseOf(chats, api.IsFalse, "continue_final_message")
	f.RefuseOf(chats, api.Never, "enable_thinking", "thinking", "reasoning_effort", "reasoning")
}

// textTokens reads max_tokens, which is 0 where the prompt is only scored.
func (f fields) textTokens(o *completion.Options) {
	n := defaultTokens
	given := f.Integer("max_tokens", &n)
	if v := f.Take("n_predict"); v != nil && api.IsNumber(-1)(v) && !given {
		o.MaxTokens = 0 // as many as the context leaves
		return
	}
	f.predict(&n, 0, given)
	o.Score = n == 0
	o.MaxTokens = max(n, 1)
}

// prompts reads a string, strings, token ids, or lists of token ids.
func (f fields) prompts(limits api.Limits) []api.Prompt {
	v := f.Take("prompt")
	if s, ok := v.(jsontree.String); ok && s != "" {
		return []api.Prompt{{Text: string(s)}}
	}
	l, ok := v.(jsontree.Array)
	switch {
	case f.Err() != nil:
		return nil
	case !ok || len(l) == 0:
		f.Invalid("prompt", "must be a text, an array of texts, or token ids, and must not be empty")
		return nil
	}
	if _, tokens := l[0].(jsontree.Number); tokens {
		return []api.Prompt{{Tokens: f.Tokens("prompt", l)}}
	}
	if !f.AtMost(api.LimitPrompts, "prompt", len(l), limits.Prompts) {
		return nil
	}
	prompts := make([]api.Prompt, 0, len(l))
	for i, item := range l {
		switch item := item.(type) {
		case jsontree.String:
			prompts = append(prompts, api.Prompt{Text: string(item)})
		case jsontree.Array:
			prompts = append(prompts, api.Prompt{Tokens: f.Tokens("prompt", item)})
		default:
			f.Invalid("prompt", "must hold texts or arrays of token ids; entry %d is %s", i, item.Kind())
			return nil
		}
		if p := prompts[i]; p.Text == "" && len(p.Tokens) == 0 {
			f.Invalid("prompt", "must not hold an empty prompt; entry %d is one", i)
			return nil
		}
	}
	return prompts
}
