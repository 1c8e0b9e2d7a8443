package api

import "github.com/atlas-inference/atlas/atlasrt/internal/jsontree"

// foreign are fields that other servers (vLLM, SGLang, llama.cpp, ollama, text-generation-webui and relatives) honour and this
// one does not, with the values at which they change nothing. To ignore any other value would be to answer another question
// than the one that was asked, so it is refused by name; null asks for nothing.
var foreign = []struct {
	name    string
	neutral func(jsontree.Value) bool
}{
	// Inputs, grammars and outputs of other kinds.
	{"prompt_embeds", never}, {"image_embeds", never}, {"logits_processors", never}, {"truncate_prompt_tokens", never},
	{"kv_transfer_params", never}, {"lora", empty}, {"lora_path", never},
	{"guided_json", never}, {"guided_regex", never}, {"guided_choice", never}, {"guided_grammar", never}, {"structured_outputs", never},
	{"json_schema", never}, {"grammar", isText("")}, {"regex", never}, {"ebnf", never}, {"structural_tag", never}, {"format", isText("")},
	{"input_ids", never}, {"input_embeds", never}, {"add_bos_token", isTrue}, {"return_tokens_as_token_ids", isFalse}, {"return_token_ids", isFalse}, {"return_hidden_states", isFalse}, {"post_sampling_probs", isFalse},
	{"prompt_logprobs", isFalse}, {"n_probs", isNumber(0)}, {"include_stop_str_in_output", isFalse}, {"priority", isNumber(0)}, {"n_indent", isNumber(0)},

	// Which tokens may come.
	{"bad_words", empty}, {"allowed_token_ids", empty}, {"banned_tokens", anyOf(empty, isText(""))}, {"custom_token_bans", anyOf(empty, isText(""))},
	{"banned_strings", empty}, {"ban_eos_token", isFalse}, {"no_repeat_ngram_size", isNumber(0)},

	// Samplers, at the values that their servers give them where nothing is asked.
	{"dry_multiplier", isNumber(0)}, {"dry_base", isNumber(0, 1.75)}, {"dry_allowed_length", isNumber(0, 2)}, {"dry_penalty_last_n", isNumber(0, -1)},
	{"dry_range", isNumber(0)}, {"dry_sequence_breakers", usualBreakers},
	{"xtc_probability", isNumber(0)}, {"xtc_threshold", isNumber(0, 0.1)},
	{"mirostat", isNumber(0)}, {"mirostat_mode", isNumber(0)}, {"mirostat_tau", isNumber(0, 5)}, {"mirostat_eta", isNumber(0, 0.1)},
	{"typical_p", isNumber(1)}, {"typical", isNumber(1)}, {"typ_p", isNumber(1)}, {"top_n_sigma", isNumber(-1, 0)}, {"nsigma", isNumber(0)},
	{"tfs_z", isNumber(1)}, {"tfs", isNumber(1)}, {"top_a", isNumber(0)}, {"epsilon_cutoff", isNumber(0)}, {"eta_cutoff", isNumber(0)},
	{"dynamic_temperature", isFalse}, {"dynatemp_range", isNumber(0)}, {"dynatemp_exponent", isNumber(1)}, {"dynatemp_low", isNumber(1)}, {"dynatemp_high", isNumber(1)},
	{"dynatemp_min", isNumber(0)}, {"dynatemp_max", isNumber(0)},
	{"smoothing_factor", isNumber(0)}, {"smoothing_curve", isNumber(1)}, {"skew", isNumber(0)}, {"adaptive_target", isNumber(-1)},
	{"min_keep", isNumber(0)}, {"samplers", never}, {"sampler_seq", never}, {"sampler_order", never}, {"sampler_priority", never}, {"temperature_last", isFalse},
	{"encoder_repetition_penalty", isNumber(1)}, {"guidance_scale", isNumber(1)}, {"negative_prompt", isText("")}, {"penalty_alpha", isNumber(0)}, {"do_sample", isTrue},

	{"custom_logit_processor", never}, {"logits_processor", never}, {"stop_regex", anyOf(empty, isText(""))}, {"no_stop_trim", isFalse}, {"token_healing", isFalse}, {"watermark", isFalse},
	{"repetition_decay", isNumber(0)}, {"cfg_scale", isNumber(1)}, {"t_max_predict_ms", isNumber(0, -1)}, {"thinking_budget", isNumber(-1)}, {"reasoning_budget", isNumber(-1)}, {"thinking_budget_tokens", isNumber(-1)},

	// Searches that weigh whole answers.
	{"use_beam_search", isFalse}, {"num_beams", isNumber(1)}, {"length_penalty", isNumber(1)}, {"early_stopping", isFalse},

	// Fields of ollama's own routes, which do nothing on these.
	{"options", func(v jsontree.Value) bool { o, ok := v.(*jsontree.Object); return ok && o.Len() == 0 }},
	{"think", never},
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
	return empty(v) || string(jsontree.Append(nil, v)) == `["\n", ":", "\"", "*"]`
}

// unhonoured refuses what others offer and this server does not. penalised says whether tokens that were seen are penalised,
// for then it matters which: here all of them are.
func (f *fields) unhonoured(penalised bool) {
	for _, field := range foreign {
		f.refuse(field.name, field.neutral)
	}
	lastN, newlines := isNumber(-1), isTrue
	if !penalised {
		lastN, newlines = isNumber(-1, 0, 64), anyOf(isTrue, isFalse) // 64 is llama.cpp's own
	}
	f.refuse("repeat_last_n", lastN)
	window := isNumber(-1, 0) // all of them
	if !penalised {
		window = func(v jsontree.Value) bool { _, number := v.(jsontree.Number); return number }
	}
	for _, name := range windows {
		f.refuse(name, window)
	}
	for _, field := range otherNames {
		f.otherName(field.name, field.ours)
	}
	f.refuse("penalize_nl", newlines)
}

// otherName refuses a name for a field that is called ours here, unless both are there with one value.
func (f *fields) otherName(name, ours string) {
	value, given := f.object.Get(ours)
	v := f.take(name)
	if v == nil || empty(v) || given && string(jsontree.Append(nil, v)) == string(jsontree.Append(nil, value)) {
		return
	}
	f.fail(Unsupported(f.path+name, "%s%s is called %s here.", f.path, name, ours))
}
