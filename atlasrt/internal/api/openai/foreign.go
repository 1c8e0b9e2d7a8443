package openai

// otherNames are what other servers call fields of ours: see OtherName of package api.
var otherNames = []struct{ name, ours string }{
	{"max_new_tokens", "max_tokens"}, {"num_predict", "max_tokens"}, {"max_length", "max_tokens"}, {"max_output_tokens", "max_tokens"}, {"min_new_tokens", "min_tokens"}, {"min_length", "min_tokens"},
	{"stopping_strings", "stop"}, {"custom_stopping_strings", "stop"}, {"stop_sequence", "stop"}, {"stop_sequences", "stop"},
}

// unhonoured refuses what others offer and this server does not.
func (f fields) unhonoured() {
	f.RefuseForeign(formFields...)
	for _, field := range otherNames {
		f.OtherName(field.name, field.ours)
	}
}
