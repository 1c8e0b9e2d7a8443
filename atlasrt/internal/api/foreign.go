package api

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// foreign are fields that other servers (vLLM, SGLang, llama.cpp, ollama, text-generation-webui and relatives) honour and this
// one does not, with the values at which they change nothing. To ignore any other value would be to answer another question
// than the one that was asked, so it is refused by name; null asks for nothing.
var foreign = []struct {
	name    string
	neutral Condition
}{
	// Inputs, grammars and outputs of other kinds.
	{"chat_template", Never}, {"prompt_embeds", Never}, {"image_embeds", Never}, {"logits_processors", Never}, {"truncate_prompt_tokens", Never},
	{"kv_transfer_params", Never}, {"lora", Empty}, {"lora_path", Never},
	{"guided_json", Never}, {"guided_regex", Never}, {"guided_choice", Never}, {"guided_grammar", Never}, {"structured_outputs", Never},
	{"json_schema", Never}, {"grammar", IsText("")}, {"regex", Never}, {"ebnf", Never}, {"structural_tag", Never}, {"format", IsText("")}, {"guided_whitespace_pattern", Never}, {"grammar_lazy", IsFalse}, {"grammar_triggers", Empty},
	{"input_ids", Never}, {"input_embeds", Never}, {"add_bos_token", IsTrue}, {"return_tokens_as_token_ids", IsFalse}, {"return_token_ids", IsFalse}, {"return_hidden_states", IsFalse}, {"post_sampling_probs", IsFalse},
	{"prompt_logprobs", IsFalse}, {"n_probs", IsNumber(0)}, {"include_stop_str_in_output", IsFalse}, {"priority", IsNumber(0)}, {"n_indent", IsNumber(0)},

	// Which tokens may come.
	{"banned_strings", Empty}, {"ban_eos_token", IsFalse}, {"no_repeat_ngram_size", IsNumber(0)},

	// Samplers, at the values that their servers give them where nothing is asked.
	{"mirostat", IsNumber(0)}, {"mirostat_mode", IsNumber(0)}, {"mirostat_tau", IsNumber(0, 5)}, {"mirostat_eta", IsNumber(0, 0.1)},
	{"typical_p", IsNumber(1)}, {"typical", IsNumber(1)}, {"typ_p", IsNumber(1)},
	{"tfs_z", IsNumber(1)}, {"tfs", IsNumber(1)}, {"top_a", IsNumber(0)}, {"epsilon_cutoff", IsNumber(0)}, {"eta_cutoff", IsNumber(0)},
	{"dynamic_temperature", IsFalse}, {"dynatemp_range", IsNumber(0)}, {"dynatemp_exponent", IsNumber(1)}, {"dynatemp_low", IsNumber(1)}, {"dynatemp_high", IsNumber(1)},
	{"dynatemp_min", IsNumber(0)}, {"dynatemp_max", IsNumber(0)},
	{"smoothing_factor", IsNumber(0)}, {"smoothing_curve", IsNumber(1)}, {"skew", IsNumber(0)}, {"adaptive_target", IsNumber(-1)},
	{"min_keep", IsNumber(0)}, {"samplers", Never}, {"sampler_seq", Never}, {"sampler_order", Never}, {"sampler_priority", Never}, {"temperature_last", IsFalse},
	{"encoder_repetition_penalty", IsNumber(1)}, {"guidance_scale", IsNumber(1)}, {"negative_prompt", IsText("")}, {"penalty_alpha", IsNumber(0)}, {"do_sample", IsTrue},

	{"custom_logit_processor", Never}, {"logits_processor", Never}, {"stop_regex", AnyOf(Empty, IsText(""))}, {"no_stop_trim", IsFalse}, {"token_healing", IsFalse}, {"watermark", IsFalse},
	{"repetition_decay", IsNumber(0)}, {"cfg_scale", IsNumber(1)}, {"t_max_predict_ms", IsNumber(0, -1)},

	// How thoughts and calls are shown, which is always apart from the text.
	{"separate_reasoning", IsTrue}, {"stream_reasoning", IsTrue}, {"parse_tool_calls", IsTrue},
	{"reasoning_format", AnyOf(IsText("auto"), IsText("deepseek"))},

	// Searches that weigh whole answers.
	{"use_beam_search", IsFalse}, {"num_beams", IsNumber(1)}, {"length_penalty", IsNumber(1)}, {"early_stopping", IsFalse},

	// Fields of ollama's own routes, which do nothing on these.
	{"options", EmptyObject},
}

// RefuseForeign refuses what other servers honour on every route and this one does on none, or on some: those that a route honours are its own.
func (f *Fields) RefuseForeign(own ...string) {
	for _, field := range foreign {
		if !slices.Contains(own, field.name) {
			f.Refuse(field.name, field.neutral)
		}
	}
}

// ofChats are fields of chats and texts that routes of other APIs do not have, with the values at which they ask for nothing, besides what is
// empty.
var ofChats = []struct {
	name    string
	neutral Condition
}{
	{"n", IsNumber(1)}, {"best_of", IsNumber(0, 1)}, {"logit_bias", Never}, {"logprobs", IsFalse}, {"response_format", Never},
	{"functions", Never}, {"function_call", Never}, {"reasoning_effort", Never}, {"stop_token_ids", Never}, {"min_tokens", IsNumber(0)}, {"ignore_eos", IsFalse},
	{"skip_special_tokens", IsTrue}, {"echo", IsFalse}, {"suffix", IsText("")}, {"continue_final_message", IsFalse}, {"add_generation_prompt", IsTrue},
	{"documents", Never}, {"web_search_options", Never}, {"include_reasoning", IsTrue},
}

// RefuseOfChats refuses fields of chats that a route of another API does not have, unless they ask for nothing: those of more names as well.
func (f *Fields) RefuseOfChats(more ...string) {
	for _, field := range ofChats {
		f.RefuseOf("/v1/chat/completions", AnyOf(field.neutral, Empty, EmptyObject), field.name)
	}
	f.RefuseOf("/v1/chat/completions", Empty, more...)
	for _, name := range []string{"min_new_tokens", "min_length"} { // of others, for min_tokens
		f.Refuse(name, IsNumber(0))
	}
}

// RefuseOf refuses fields that another route has and this one does not, unless they ask for nothing.
func (f *Fields) RefuseOf(route string, neutral Condition, names ...string) {
	for _, name := range names {
		if v := f.Take(name); v != nil && !neutral(v) {
			f.Fail(Unsupported(name, "%s is a field of %s, which this route does not have; leave it out.", name, route))
		}
	}
}

// RefuseNames refuses what other APIs call a field of ours.
func (f *Fields) RefuseNames(ours string, names ...string) {
	for _, name := range names {
		if v := f.Take(name); v != nil && !Empty(v) {
			f.Fail(Unsupported(name, "%s is called %s here.", name, ours))
		}
	}
}

// RefuseLimits is RefuseNames for the most tokens of an answer.
func (f *Fields) RefuseLimits(ours string, names ...string) {
	f.RefuseNames(ours, append(names, "n_predict", "num_predict", "max_new_tokens", "max_length")...)
}

// RefuseThinking refuses what other APIs call the field that says how the model thinks.
func (f *Fields) RefuseThinking(ours string, names ...string) {
	f.RefuseNames(ours, append(names, "enable_thinking", "think", "thinking_budget", "thinking_token_budget", "reasoning_budget", "thinking_budget_tokens")...)
}

// OtherName refuses a name for a field that is called ours here, unless both are there with one value: clients of many servers send both.
func (f *Fields) OtherName(name, ours string) {
	value, given := f.Peek(ours)
	v := f.Take(name)
	if v == nil || Empty(v) || given && string(jsontree.Append(nil, v)) == string(jsontree.Append(nil, value)) {
		return
	}
	f.Fail(Unsupported(f.Path(name), "%s is called %s here.", f.Path(name), ours))
}

// otherSamplers refuses what other servers call fields of Samplers, and what they offer of penalties.
func (f *Fields) otherSamplers(r *Request) {
	f.OtherName("rep_pen", "repetition_penalty")
	f.OtherName("sampler_seed", "seed")
	for _, name := range []string{"repetition_context_size", "presence_context_size", "frequency_context_size"} { // of mlx-lm
		f.penalised(r, name, AnyNumber, IsNumber(-1, 0))
	}
	f.penalised(r, "penalize_nl", AnyOf(IsTrue, IsFalse), IsTrue)
}

// penalised refuses a field about which of the tokens that were seen are penalised: here all of them are. What is not all is
// harmless only where none is penalised.
func (f *Fields) penalised(r *Request, name string, harmless, all Condition) {
	f.Refuse(name, harmless)
	if v := f.Take(name); v != nil && !all(v) && r.IfPenalised == nil {
		r.IfPenalised = f.Refusal(name)
	}
}

// LeftOut stands for what a tool gave that is no text. A tool may give an image at any time, and the conversation must go on.
func LeftOut(kind string) string {
	return "[" + Clip(kind, 40) + " left out: this model reads text only]"
}
