package openai

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// routes are the two routes with ranges, and what their requests need.
var routes = []struct {
	name    string
	dialect api.Dialect
	ranges  []api.Range
	least   string
}{
	{"chat", Chat{}, chatRanges, `"messages":[{"role":"user","content":"hi"}]`},
	{"text", Text{}, textRanges, `"prompt":"x"`},
}

// ranged is a value and whether the range holds it.
type ranged struct {
	value string
	ok    bool
}

// Every row of the table, on each of its routes: its ends, what lies beyond them, and values of other kinds.
func TestT028Ranges(t *testing.T) {
	with := map[string]string{"top_logprobs": `"logprobs":true,`} // what a field needs beside it
	shapes := map[string]string{"logit_bias": `{"5":%s}`}
	outer := map[string]string{"budget_tokens": "thinking"} // the object that a field lies in
	type row struct {
		api.Range
		route int
	}
	var rows []row
	for i, route := range routes {
		for _, r := range route.ranges {
			rows = append(rows, row{r, i})
		}
	}
	for _, r := range rows {
		write := func(n float64) string {
			switch {
			case r.High == math.MaxInt64 && n > 0:
				return "9223372036854775807"
			case r.Whole:
				return fmt.Sprintf("%.0f", n)
			}
			return fmt.Sprint(n)
		}
		cases := []ranged{
			{"null", true}, {`"1"`, false}, {"true", false}, {"[1]", false}, {"{}", false}, {"1e400", false}, {"-1e400", false}, {"1" + strings.Repeat("0", 5000), false},
			{write(r.Low), !r.LowOpen}, {write(r.High), true}, {"1.0", true}, {"1", true}, {"10e-1", true},
		}
		if r.Whole {
			cases = append(cases, ranged{"1.5", false}, ranged{"9223372036854775808", false}, ranged{"-9223372036854775809", false}, ranged{"1e19", false})
		} else {
			cases = append(cases, ranged{write(r.Low - 0.01), false}, ranged{write(r.High + 0.01), false}, ranged{write((r.Low + r.High) / 2), true})
		}
		if r.Whole && r.Low > math.MinInt64 {
			cases = append(cases, ranged{write(r.Low - 1), false})
		}
		if r.Whole && r.High <= api.Most {
			cases = append(cases, ranged{write(r.High + 1), false})
		}
		shape, inside := shapes[r.Name]
		if !inside {
			shape = "%s"
		}
		cases[0].ok = !inside                                               // null is nothing, but as the bias of a token
		if r.Name == "n" || r.Name == "best_of" || r.Name == "min_tokens" { // other limits come first
			cases[9].value = "1"
		}
		route := routes[r.route]
		path := r.Name
		decodeWith := func(fields string) error { return decode(route.dialect, `{`+route.least+`,`+fields+`}`).err }
		if object, ok := outer[r.Name]; ok {
			path = object + "." + r.Name
			decodeWith = func(fields string) error {
				return decode(route.dialect, `{`+route.least+`,"`+object+`":{`+fields+`}}`).err
			}
		}
		for _, c := range cases {
			err := decodeWith(fmt.Sprintf(`%s"%s":`+shape, with[r.Name], r.Name, c.value))
			e, bad := errors.AsType[*api.Error](err)
			if c.ok && err != nil && !(r.Name == "n_predict" && c.value == "0") || !c.ok && (!bad || e.Kind != api.KindInvalid || e.Field != path) {
				t.Errorf("route %s, %s of %.40s: got %+v, want accepted %v", route.name, r.Name, c.value, err, c.ok)
			}
		}
		for _, value := range []string{"NaN", "Infinity", "-Infinity", "0x1", "01", "1.", "+1"} {
			if err := decodeWith(fmt.Sprintf(`"%s":`+shape, r.Name, value)); err == nil {
				t.Errorf("route %s, %s of %s is accepted", route.name, r.Name, value)
			}
		}
	}
}

// Ranges of a field never overlap on a route, so that each lookup has one answer.
func TestRangesAreUnique(t *testing.T) {
	for _, route := range routes {
		seen := map[string]bool{}
		for _, r := range route.ranges {
			if seen[r.Name] {
				t.Errorf("%s has two ranges on the route %s", r.Name, route.name)
			}
			seen[r.Name] = true
		}
	}
}

// Both routes agree on what foreign fields may be: nothing, or what changes nothing.
func TestForeignFields(t *testing.T) {
	accepted := []string{
		`"dry_multiplier":0`, `"dry_base":1.75,"dry_allowed_length":2,"dry_penalty_last_n":-1,"dry_sequence_breakers":["\n",":","\"","*"]`, `"xtc_probability":0.0,"xtc_threshold":0.1`,
		`"mirostat":0,"mirostat_tau":5.0,"mirostat_eta":0.1`, `"typical_p":1,"typ_p":1.0,"top_n_sigma":-1,"tfs_z":1,"top_a":0,"min_keep":0`, `"dynatemp_range":0,"dynatemp_exponent":1`,
		`"smoothing_factor":0,"smoothing_curve":1`, `"no_repeat_ngram_size":0,"length_penalty":1.0,"early_stopping":false,"use_beam_search":false`, `"banned_tokens":[],"custom_token_bans":""`,
		`"options":{},"format":"","keep_alive":"5m"`, `"n_probs":0,"grammar":"","lora":[]`, `"repeat_last_n":64`, `"repeat_last_n":-1,"repeat_penalty":1.3`, `"logit_bias":{}`,
		`"max_tokens":5,"max_new_tokens":5,"num_predict":5`, `"stop":["a"],"stopping_strings":["a"],"stop_sequence":[]`, `"repetition_penalty":1.1,"rep_pen":1.1`, `"seed":7,"sampler_seed":7`,
		`"repetition_penalty_range":320,"rep_pen_range":320,"repeat_last_n":320`, `"repetition_penalty_range":0,"penalty_range":-1,"repetition_penalty":1.1`, `"add_bos_token":true,"t_max_predict_ms":0`,
	}
	refused := []struct{ fields, param string }{

		{`"mirostat":2`, "mirostat"}, {`"mirostat_tau":4`, "mirostat_tau"}, {`"mirostat_eta":0.2`, "mirostat_eta"}, {`"typical_p":0.9`, "typical_p"}, {`"typical":0.9`, "typical"},
		{`"tfs_z":0.9`, "tfs_z"}, {`"top_a":0.1`, "top_a"}, {`"dynatemp_range":0.5`, "dynatemp_range"}, {`"dynatemp_exponent":2`, "dynatemp_exponent"},
		{`"smoothing_factor":0.2`, "smoothing_factor"}, {`"smoothing_curve":2`, "smoothing_curve"},
		{`"penalize_nl":false,"presence_penalty":1`, "penalize_nl"}, {`"n_probs":3`, "n_probs"}, {`"min_keep":1`, "min_keep"}, {`"samplers":["top_k"]`, "samplers"},
		{`"length_penalty":0.5`, "length_penalty"}, {`"early_stopping":true`, "early_stopping"}, {`"use_beam_search":true`, "use_beam_search"}, {`"no_repeat_ngram_size":2`, "no_repeat_ngram_size"},
		{`"epsilon_cutoff":1`, "epsilon_cutoff"}, {`"eta_cutoff":1`, "eta_cutoff"},
		{`"options":{"num_ctx":1}`, "options"}, {`"format":"json"`, "format"}, {`"xtc_probability":"0"`, "xtc_probability"},
		{`"max_new_tokens":5`, "max_new_tokens"}, {`"max_tokens":5,"max_new_tokens":6`, "max_new_tokens"}, {`"num_predict":5`, "num_predict"}, {`"max_output_tokens":5`, "max_output_tokens"}, {`"min_new_tokens":1`, "min_new_tokens"},
		{`"stopping_strings":["a"]`, "stopping_strings"}, {`"stop":"b","stop_sequences":["a"]`, "stop_sequences"}, {`"rep_pen":1.2`, "rep_pen"}, {`"sampler_seed":1`, "sampler_seed"},
		{`"repetition_context_size":20,"repetition_penalty":1.1`, "repetition_context_size"}, {`"rep_pen_range":"all"`, "rep_pen_range"},
		{`"custom_logit_processor":"x"`, "custom_logit_processor"}, {`"t_max_predict_ms":100`, "t_max_predict_ms"}, {`"separate_reasoning":false`, "separate_reasoning"}, {`"reasoning_format":"none"`, "reasoning_format"}, {`"add_bos_token":false`, "add_bos_token"},
		{`"return_token_ids":true`, "return_token_ids"}, {`"logit_bias":[[1,2]]`, "logit_bias"}, {`"guided_whitespace_pattern":" "`, "guided_whitespace_pattern"}, {`"structural_tag":{}`, "structural_tag"}, {`"do_sample":false`, "do_sample"}, {`"dry_base":1e400`, "dry_base"},
	}
	for _, route := range routes {
		decodeWith := func(fields string) error { return decode(route.dialect, `{`+route.least+`,`+fields+`}`).err }
		for _, c := range accepted {
			if err := decodeWith(c); err != nil {
				t.Errorf("route %s, %s: %v", route.name, c, err)
			}
		}
		for _, c := range refused {
			e, ok := errors.AsType[*api.Error](decodeWith(c.fields))
			if !ok || e.Field != c.param || !strings.Contains(e.Message, c.param) {
				t.Errorf("route %s, %s: got %+v, want a refusal of %s", route.name, c.fields, e, c.param)
			}
		}
	}
}

// The completions route has one name for its most tokens; the chat route's is refused there, unless it says the same.
func TestMaxCompletionTokensOfTexts(t *testing.T) {
	cases := []struct {
		fields string
		ok     bool
	}{
		{`"max_completion_tokens":5`, false}, {`"max_tokens":5,"max_completion_tokens":6`, false},
		{`"max_tokens":5,"max_completion_tokens":5`, true}, {`"max_completion_tokens":null`, true},
	}
	for _, c := range cases {
		e, refused := errors.AsType[*api.Error](decode(Text{}, `{"prompt":"x",`+c.fields+`}`).err)
		if refused == c.ok || refused && e.Field != "max_completion_tokens" {
			t.Errorf("%s: got %v, want it taken: %v", c.fields, e, c.ok)
		}
	}
}

// Whether to think may be said beside chat_template_kwargs, whose word counts more.
func TestEnableThinking(t *testing.T) {
	cases := []struct{ fields, want string }{
		{``, ``}, {`,"enable_thinking":null`, ``}, {`,"enable_thinking":false`, `false`}, {`,"enable_thinking":true`, `true`},
		{`,"enable_thinking":true,"chat_template_kwargs":{"enable_thinking":false}`, `false`}, {`,"enable_thinking":"no"`, `enable_thinking must be true or false, not a string.`},
	}
	for _, c := range cases {
		got := ""
		r := decode(Chat{}, body(c.fields))
		if r.err != nil {
			got = r.err.Error()
		} else if on := r.Chat.Thinking.On; on != nil {
			got = fmt.Sprint(*on)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.fields, got, c.want)
		}
	}
}

// Names that other servers use for fields of ours count.
func TestOtherNames(t *testing.T) {
	chat := decode(Chat{}, body(`,"repeat_penalty":1.3,"n_predict":12`))
	if chat.err != nil || chat.Options.MaxTokens != 12 || *chat.Options.Sampling.RepetitionPenalty != 1.3 || chat.Unknown != 0 {
		t.Errorf("got %+v, %v", chat.Request, chat.err)
	}
	cases := []struct {
		fields string
		most   int
		score  bool
	}{{``, 16, false}, {`,"n_predict":-1`, 0, false}, {`,"n_predict":3`, 3, false}, {`,"n_predict":0`, 1, true}, {`,"max_tokens":0`, 1, true}, {`,"max_tokens":5,"n_predict":5`, 5, false}}
	for _, c := range cases {
		r := decode(Text{}, `{"prompt":"x"`+c.fields+`}`)
		if r.err != nil || r.Options.MaxTokens != c.most || r.Options.Score != c.score {
			t.Errorf("%s: got %+v, %v, want at most %d tokens, score %v", c.fields, r.Request, r.err, c.most, c.score)
		}
	}
}

// Whether tokens are penalised may be the model's word: a field about which of them are is refused then.
func TestWindowsOfModelsThatPenalise(t *testing.T) {
	penalising := sample.Defaults()
	penalising.RepetitionPenalty = 1.1
	cases := []struct {
		fields   string
		defaults sample.Params
		field    string
	}{
		{`"repetition_context_size":64`, sample.Defaults(), ""}, {`"repetition_context_size":64`, penalising, "repetition_context_size"}, {`"repeat_last_n":64`, penalising, ""},
		{`"presence_context_size":64,"repetition_penalty":1`, penalising, ""}, {`"penalize_nl":false`, penalising, "penalize_nl"}, {`"penalize_nl":false,"repeat_last_n":0`, penalising, ""},
	}
	for _, route := range routes {
		for _, c := range cases {
			r, err := route.dialect.Decode([]byte(`{`+route.least+`,`+c.fields+`}`), api.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			e, _ := errors.AsType[*api.Error](r.Check(&completion.Generator{Vocab: vocab, Defaults: c.defaults}))
			if got := cmp.Or(e, &api.Error{}).Field; got != c.field {
				t.Errorf("route %s, %s of a model with the penalty %g: blames %q, want %q", route.name, c.fields, c.defaults.RepetitionPenalty, got, c.field)
			}
		}
	}
}
