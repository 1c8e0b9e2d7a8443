package openai

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// foreign are fields that other servers (vLLM, SGLang, llama.cpp, ollama, text-generation-webui and relatives) honour and this
// one does not, with the values at which they change nothing. To ignore any other value would be to answer another question
// than the one that was asked, so it is refused by name; null asks for nothing.
var foreign = []struct {
	name    string
	neutral api.Condition
}{
	// Inputs, grammars and outputs of other kinds.
	{"prompt_embeds", api.Never}, {"image_embeds", api.Never}, {"logits_processors", api.Never}, {"truncate_prompt_tokens", api.Never},
	{"kv_transfer_params", api.Never}, {"lora", api.Empty}, {"lora_path", api.Never},
	{"guided_json", api.Never}, {"guided_regex", api.Never}, {"guided_choice", api.Never}, {"guided_grammar", api.Never}, {"structured_outputs", api.Never},
	{"json_schema", api.Never}, {"grammar", api.IsText("")}, {"regex", api.Never}, {"ebnf", api.Never}, {"structural_tag", api.Never}, {"format", api.IsText("")},
	{"input_ids", api.Never}, {"input_embeds", api.Never}, {"add_bos_token", api.IsTrue}, {"return_tokens_as_token_ids", api.IsFalse}, {"return_token_ids", api.IsFalse}, {"return_hidden_states", api.IsFalse}, {"post_sampling_probs", api.IsFalse},
	{"prompt_logprobs", api.IsFalse}, {"n_probs", api.IsNumber(0)}, {"include_stop_str_in_output", api.IsFalse}, {"priority", api.IsNumber(0)}, {"n_indent", api.IsNumber(0)},

	// Which tokens may come.
	{"bad_words", api.Empty}, {"allowed_token_ids", api.Empty}, {"banned_tokens", api.AnyOf(api.Empty, api.IsText(""))}, {"custom_token_bans", api.AnyOf(api.Empty, api.IsText(""))},
	{"banned_strings", api.Empty}, {"ban_eos_token", api.IsFalse}, {"no_repeat_ngram_size", api.IsNumber(0)},

	// Samplers, at the values that their servers give them where nothing is asked.
	{"dry_multiplier", api.IsNumber(0)}, {"dry_base", api.IsNumber(0, 1.75)}, {"dry_allowed_length", api.IsNumber(0, 2)}, {"dry_penalty_last_n", api.IsNumber(0, -1)},
	{"dry_range", api.IsNumber(0)}, {"dry_sequence_breakers", usualBreakers},
	{"xtc_probability", api.IsNumber(0)}, {"xtc_threshold", api.IsNumber(0, 0.1)},
	{"mirostat", api.IsNumber(0)}, {"mirostat_mode", api.IsNumber(0)}, {"mirostat_tau", api.IsNumber(0, 5)}, {"mirostat_eta", api.IsNumber(0, 0.1)},
	{"typical_p", api.IsNumber(1)}, {"typical", api.IsNumber(1)}, {"typ_p", api.IsNumber(1)}, {"top_n_sigma", api.IsNumber(-1, 0)}, {"nsigma", api.IsNumber(0)},
	{"tfs_z", api.IsNumber(1)}, {"tfs", api.IsNumber(1)}, {"top_a", api.IsNumber(0)}, {"epsilon_cutoff", api.IsNumber(0)}, {"eta_cutoff", api.IsNumber(0)},
	{"dynamic_temperature", api.IsFalse}, {"dynatemp_range", api.IsNumber(0)}, {"dynatemp_exponent", api.IsNumber(1)}, {"dynatemp_low", api.IsNumber(1)}, {"dynatemp_high", api.IsNumber(1)},
	{"dynatemp_min", api.IsNumber(0)}, {"dynatemp_max", api.IsNumber(0)},
	{"smoothing_factor", api.IsNumber(0)}, {"smoothing_curve", api.IsNumber(1)}, {"skew", api.IsNumber(0)}, {"adaptive_target", api.IsNumber(-1)},
	{"min_keep", api.IsNumber(0)}, {"samplers", api.Never}, {"sampler_seq", api.Never}, {"sampler_order", api.Never}, {"sampler_priority", api.Never}, {"temperature_last", api.IsFalse},
	{"encoder_repetition_penalty", api.IsNumber(1)}, {"guidance_scale", api.IsNumber(1)}, {"negative_prompt", api.IsText("")}, {"penalty_alpha", api.IsNumber(0)}, {"do_sample", api.IsTrue},

	{"custom_logit_processor", api.Never}, {"logits_processor", api.Never}, {"stop_regex", api.AnyOf(api.Empty, api.IsText(""))}, {"no_stop_trim", api.IsFalse}, {"token_healing", api.IsFalse}, {"watermark", api.IsFalse},
	{"repetition_decay", api.IsNumber(0)}, {"cfg_scale", api.IsNumber(1)}, {"t_max_predict_ms", api.IsNumber(0, -1)},

	// How thoughts and calls are shown, which is always apart from the text.
	{"separate_reasoning", api.IsTrue}, {"stream_reasoning", api.IsTrue}, {"parse_tool_calls", api.IsTrue},
	{"reasoning_format", api.AnyOf(api.IsText("auto"), api.IsText("deepseek"))},

	// Searches that weigh whole answers.
	{"use_beam_search", api.IsFalse}, {"num_beams", api.IsNumber(1)}, {"length_penalty", api.IsNumber(1)}, {"early_stopping", api.IsFalse},

	// Fields of ollama's own routes, which do nothing on these.
	{"options", api.EmptyObject},
}

// otherNames are what other servers call fields of ours. Clients of many servers send both, so the same value under both is fine.
var otherNames = []struct{ name, ours string }{
	{"max_new_tokens", "max_tokens"}, {"num_predict", "max_tokens"}, {"max_length", "max_tokens"}, {"max_output_tokens", "max_tokens"}, {"min_new_tokens", "min_tokens"}, {"min_length", "min_tokens"},
	{"stopping_strings", "stop"}, {"custom_stopping_strings", "stop"}, {"stop_sequence", "stop"}, {"stop_sequences", "stop"},
	{"rep_pen", "repetition_penalty"}, {"sampler_seed", "seed"},
}

// windows are how many of the last tokens other servers penalise.
var windows = []string{"repetition_penalty_range", "rep_pen_range", "penalty_range", "repetition_context_size", "presence_context_size", "frequency_context_size"}

// usualBreakers accepts no dry_sequence_breakers, or those that llama.cpp has by itself.
func usualBreakers(v jsontree.Value) bool {
	return api.Empty(v) || string(jsontree.Append(nil, v)) == `["\n", ":", "\"", "*"]`
}

// unhonoured refuses what others offer and this server does not.
func (f *fields) unhonoured(r *api.Request) {
	for _, field := range foreign {
		f.Refuse(field.name, field.neutral)
	}
	f.penalised(r, "repeat_last_n", api.IsNumber(-1, 0, 64), api.IsNumber(-1)) // 64 is llama.cpp's own
	for _, name := range windows {
		f.penalised(r, name, api.AnyNumber, api.IsNumber(-1, 0))
	}
	for _, field := range otherNames {
		f.otherName(field.name, field.ours)
	}
	f.penalised(r, "penalize_nl", api.AnyOf(api.IsTrue, api.IsFalse), api.IsTrue)
}

// penalised refuses a field about which of the tokens that were seen are penalised: here all of them are. What is not all is
// harmless only where none is penalised.
func (f *fields) penalised(r *api.Request, name string, harmless, all api.Condition) {
	f.Refuse(name, harmless)
	if v := f.Take(name); v != nil && !all(v) && r.IfPenalised == nil {
		r.IfPenalised = f.Refusal(name)
	}
}

// otherName refuses a name for a field that is called ours here, unless both are there with one value.
func (f *fields) otherName(name, ours string) {
	value, given := f.Peek(ours)
	v := f.Take(name)
	if v == nil || api.Empty(v) || given && string(jsontree.Append(nil, v)) == string(jsontree.Append(nil, value)) {
		return
	}
	f.Fail(api.Unsupported(f.Path(name), "%s is called %s here.", f.Path(name), ours))
}
