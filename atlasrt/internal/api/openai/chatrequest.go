package openai

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// Decode implements api.Dialect.
func (Chat) Decode(body []byte, limits api.Limits) (*api.Request, error) {
	f, err := readObject(body, chatRanges)
	if err != nil {
		return nil, err
	}
	r := f.generation(limits)
	r.Chat, r.Options.Calls = f.conversation(limits)
	r.FunctionCall, r.Options.OneCall = f.older(), f.oneCall()
	r.HideReasoning = f.hidesReasoning()
	// The newer field wins, but both must make sense.
	given := f.Integer("max_tokens", &r.Options.MaxTokens)
	given = f.Integer("max_completion_tokens", &r.Options.MaxTokens) || given
	f.predict(&r.Options.MaxTokens, 1, given)
	f.minTokens(&r.Options)
	f.chatLogProbs(&r.Options)
	f.ofOthers()
	r.Unknown = f.Unknown()
	return r, f.Failure()
}

// ofOthers refuses what other APIs have where chats have something else.
func (f fields) ofOthers() {
	f.RefuseOf("/v1/messages", api.AnyOf(api.Empty, api.IsText("")), "system")
	f.RefuseOf("/v1/messages", api.EmptyObject, "output_config", "output_format")
	f.RefuseOf("/v1/responses", api.AnyOf(api.Empty, api.IsText("")), "input", "instructions", "previous_response_id")
	f.RefuseOf("/v1/completions", api.IsText(""), "prompt")
}

// minTokens holds min_tokens against max_tokens.
func (f fields) minTokens(o *completion.Options) {
	if o.MaxTokens > 0 && o.MinTokens > o.MaxTokens {
		f.Invalid("min_tokens", "is %d, must not be more than max_tokens, which is %d", o.MinTokens, o.MaxTokens)
	}
}

func (f fields) chatLogProbs(o *completion.Options) {
	on, top := false, 0
	f.Bool("logprobs", &on)
	if f.Integer("top_logprobs", &top) && top > 0 && !on {
		f.Invalid("top_logprobs", "needs logprobs to be true")
	}
	if on {
		o.LogProbs = top
	}
}

// conversation reads what the template gets to see, and what of its tools must be called. It refuses what only a model with media could do.
func (f fields) conversation(limits api.Limits) (*chat.Request, parse.Choice) {
	r := &chat.Request{AddGenerationPrompt: true}
	asked := f.Bool("add_generation_prompt", &r.AddGenerationPrompt)
	f.Bool("continue_final_message", &r.Continue)
	if r.Continue && asked && r.AddGenerationPrompt {
		f.Invalid("continue_final_message", "and add_generation_prompt cannot both be true: the answer goes on with the last message, or begins a new one")
	}
	r.AddGenerationPrompt = r.AddGenerationPrompt && !r.Continue
	r.Messages = f.messages(limits)
	tools, calls := f.tools(limits)
	r.Tools = tools
	f.thinking(&r.Thinking)
	f.variables(r)
	f.Refuse("documents", api.Empty)
	f.Refuse("modalities", func(v jsontree.Value) bool {
		l, ok := v.(jsontree.Array)
		return ok && !slices.ContainsFunc(l, func(v jsontree.Value) bool { return !api.IsText("text")(v) })
	})
	for _, name := range []string{"audio", "web_search_options", "suffix", "mm_processor_kwargs"} {
		f.Refuse(name, api.Never)
	}
	for _, name := range []string{"echo", "add_special_tokens"} {
		f.Refuse(name, api.IsFalse)
	}
	return r, calls
}
