package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// ranged opens an object whose numbers are those of samplers.
func ranged(t *testing.T, text string) *Fields {
	t.Helper()
	f, err := ReadObject([]byte(text), SamplerRanges())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func repeat(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

// Samplers are read under all their names.
func TestSamplers(t *testing.T) {
	cases := []struct {
		object string
		change func(*sample.Params)
	}{
		{`{}`, func(*sample.Params) {}},
		{`{"top_n_sigma":1.5}`, func(p *sample.Params) { p.TopNSigma = 1.5 }},
		{`{"nsigma":1.5,"top_n_sigma":1.5}`, func(p *sample.Params) { p.TopNSigma = 1.5 }},
		{`{"top_n_sigma":-1}`, func(*sample.Params) {}},
		{`{"xtc_probability":0.5,"xtc_threshold":0.2}`, func(p *sample.Params) { p.XTCProbability, p.XTCThreshold = 0.5, 0.2 }},
		{`{"adaptive_sampling":true}`, func(p *sample.Params) { p.MinEntropy = sample.AdaptiveEntropy }},
		{`{"adaptive_sampling":true,"adaptive_entropy":1}`, func(p *sample.Params) { p.MinEntropy = 1 }},
		{`{"adaptive_entropy":1}`, func(p *sample.Params) { p.MinEntropy = 1 }},
		{`{"adaptive_sampling":false}`, func(*sample.Params) {}},
		{`{"dry_multiplier":0.8}`, func(p *sample.Params) { p.DRY.Multiplier = 0.8 }},
		{`{"dry_multiplier":0.8,"dry_base":2,"dry_allowed_length":3,"dry_range":9}`, func(p *sample.Params) { p.DRY = sample.DRY{Multiplier: 0.8, Base: 2, AllowedLength: 3, Range: 9} }},
		{`{"dry_multiplier":0.8,"dry_penalty_last_n":64}`, func(p *sample.Params) { p.DRY.Multiplier, p.DRY.Range = 0.8, 64 }},
		{`{"dry_multiplier":0.8,"dry_penalty_last_n":-1,"dry_range":0}`, func(p *sample.Params) { p.DRY.Multiplier = 0.8 }},
		{`{"dry_multiplier":0.8,"dry_penalty_last_n":0}`, func(*sample.Params) {}},
		{`{"lz_penalty":0.15}`, func(p *sample.Params) { p.LZPenalty = 0.15 }},
		{`{"repeat_last_n":64}`, func(p *sample.Params) { p.RepetitionPenalty, p.Window = 2, 64 }},
		{`{"penalty_last_n":-1}`, func(p *sample.Params) { p.RepetitionPenalty, p.Window = 2, sample.WholeContext }},
		{`{"repeat_last_n":0}`, func(p *sample.Params) { p.RepetitionPenalty = 1 }},
		{`{"rep_pen_range":5,"penalty_range":5}`, func(p *sample.Params) { p.Window = 5 }},
		{`{"rep_pen_range":0,"penalty_range":-1}`, func(*sample.Params) {}},
		{`{"banned_tokens":[3,4]}`, func(p *sample.Params) { p.BadWords = [][]int32{{3}, {4}} }},
		{`{"banned_tokens":"","custom_token_bans":"3, 4"}`, func(p *sample.Params) { p.BadWords = [][]int32{{3}, {4}} }},
		{`{"bad_words_ids":[[3,4],[5]],"bad_words":[]}`, func(p *sample.Params) { p.BadWords = [][]int32{{3, 4}, {5}} }},
		{`{"allowed_token_ids":[7,8]}`, func(p *sample.Params) { p.Allowed = []int32{7, 8} }},
		{`{"allowed_token_ids":[]}`, func(*sample.Params) {}},
	}
	for _, c := range cases {
		f, r := ranged(t, c.object), &Request{}
		f.Samplers(r, DefaultLimits())
		defaults := sample.Defaults()
		defaults.RepetitionPenalty = 2
		want := defaults
		c.change(&want)
		got := r.Options.Sampling.Over(defaults)
		if f.Err() != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || f.Unknown() > 0 {
			t.Errorf("%s: %v, %d fields unknown\ngot  %+v\nwant %+v", c.object, f.Err(), f.Unknown(), got, want)
		}
	}
}

// Texts that break repetitions come as an array, or as a text that holds one.
func TestTextsOfSamplers(t *testing.T) {
	cases := []struct{ object, breakers, words string }{
		{`{}`, "[]string(nil)", `[]`},
		{`{"dry_sequence_breakers":["\n",":"],"bad_words":["a b"," c"]}`, `[]string{"\n", ":"}`, `["a b" " c"]`},
		{`{"dry_sequence_breakers":[]}`, "[]string{}", `[]`},
		{`{"dry_sequence_breakers":"\"\\n\", \"*\""}`, `[]string{"\n", "*"}`, `[]`},
		{`{"dry_sequence_breakers":"[\"x\"]"}`, `[]string{"x"}`, `[]`},
	}
	for _, c := range cases {
		f, r := ranged(t, c.object), &Request{}
		f.Samplers(r, DefaultLimits())
		if got := fmt.Sprintf("%#v", r.Options.Breakers); f.Err() != nil || got != c.breakers || fmt.Sprintf("%q", r.Options.BadWords) != c.words {
			t.Errorf("%s: got %v, %s, %q, want %s, %s", c.object, f.Err(), got, r.Options.BadWords, c.breakers, c.words)
		}
	}
}

// What makes no sense is blamed on its field.
func TestSamplersRefused(t *testing.T) {
	for object, field := range map[string]string{
		`{"top_n_sigma":-2}`:                                    "top_n_sigma",
		`{"top_n_sigma":1,"nsigma":2}`:                          "nsigma",
		`{"xtc_probability":1.1}`:                               "xtc_probability",
		`{"xtc_threshold":-0.1}`:                                "xtc_threshold",
		`{"adaptive_sampling":1}`:                               "adaptive_sampling",
		`{"adaptive_sampling":false,"adaptive_entropy":1}`:      "adaptive_entropy",
		`{"dry_multiplier":-1}`:                                 "dry_multiplier",
		`{"dry_range":5,"dry_penalty_last_n":6}`:                "dry_range",
		`{"dry_penalty_last_n":-2}`:                             "dry_penalty_last_n",
		`{"dry_sequence_breakers":["a",1]}`:                     "dry_sequence_breakers",
		`{"dry_sequence_breakers":[""]}`:                        "dry_sequence_breakers",
		`{"dry_sequence_breakers":"x"}`:                         "dry_sequence_breakers",
		`{"dry_sequence_breakers":5}`:                           "dry_sequence_breakers",
		`{"repeat_last_n":5,"rep_pen_range":6}`:                 "rep_pen_range",
		`{"repeat_last_n":-2}`:                                  "repeat_last_n",
		`{"lz_penalty":101}`:                                    "lz_penalty",
		`{"bad_words":[" "]}`:                                   "bad_words",
		`{"bad_words":"x"}`:                                     "bad_words",
		`{"bad_words_ids":[5]}`:                                 "bad_words_ids[0]",
		`{"bad_words_ids":[[]]}`:                                "bad_words_ids[0]",
		`{"banned_tokens":["a"]}`:                               "banned_tokens",
		`{"custom_token_bans":"1,x"}`:                           "custom_token_bans",
		`{"custom_token_bans":1}`:                               "custom_token_bans",
		`{"allowed_token_ids":[1.5]}`:                           "allowed_token_ids",
		`{"bad_words":[` + repeat(257, `"x"`) + `]}`:            "bad_words",
		`{"banned_tokens":[` + repeat(1025, `1`) + `]}`:         "banned_tokens",
		`{"dry_sequence_breakers":[` + repeat(33, `"x"`) + `]}`: "dry_sequence_breakers",
	} {
		f := ranged(t, object)
		f.Samplers(&Request{}, DefaultLimits())
		if e := f.Err(); e == nil || e.Field != field {
			t.Errorf("%.80s: got %+v, want %s blamed", object, e, field)
		}
	}
}
