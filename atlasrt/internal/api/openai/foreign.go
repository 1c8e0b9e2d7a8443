package openai

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// otherNames are what other servers call fields of ours. Clients of many servers send both, so the same value under both is fine.
var otherNames = []struct{ name, ours string }{
	{"max_new_tokens", "max_tokens"}, {"num_predict", "max_tokens"}, {"max_length", "max_tokens"}, {"max_output_tokens", "max_tokens"}, {"min_new_tokens", "min_tokens"}, {"min_length", "min_tokens"},
	{"stopping_strings", "stop"}, {"custom_stopping_strings", "stop"}, {"stop_sequence", "stop"}, {"stop_sequences", "stop"},
	{"rep_pen", "repetition_penalty"}, {"sampler_seed", "seed"},
}

// windows are how many of the last tokens mlx-lm penalises, for each penalty apart.
var windows = []string{"repetition_context_size", "presence_context_size", "frequency_context_size"}

// unhonoured refuses what others offer and this server does not.
func (f fields) unhonoured(r *api.Request) {
	f.RefuseForeign(formFields...)
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
func (f fields) penalised(r *api.Request, name string, harmless, all api.Condition) {
	f.Refuse(name, harmless)
	if v := f.Take(name); v != nil && !all(v) && r.IfPenalised == nil {
		r.IfPenalised = f.Refusal(name)
	}
}

// otherName refuses a name for a field that is called ours here, unless both are there with one value.
func (f fields) otherName(name, ours string) {
	value, given := f.Peek(ours)
	v := f.Take(name)
	if v == nil || api.Empty(v) || given && string(jsontree.Append(nil, v)) == string(jsontree.Append(nil, value)) {
		return
	}
	f.Fail(api.Unsupported(f.Path(name), "%s is called %s here.", f.Path(name), ours))
}
