package instance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// usual are parameters with the values that nobody recommends.
func usual(p sample.Params) sample.Params {
	p.XTCThreshold, p.DRY = sample.Defaults().XTCThreshold, sample.Defaults().DRY
	return p
}

func TestCheckpointBeatsPreset(t *testing.T) {
	number := func(v float32) *float32 { return &v }
	count := func(v int32) *int32 { return &v }
	no, yes := false, true
	preset := []Facts{{From: "preset tiny", Sampling: Defaults{Temperature: number(0.2), TopP: number(0.9)}}}
	operator := append([]Facts{{From: "--model-facts", Operator: true, Sampling: Defaults{Temperature: number(0.4), PresencePenalty: number(1)}}}, preset...)
	cases := []struct {
		name       string
		checkpoint Defaults
		facts      []Facts
		want       sample.Params
		from       string // of temperature, top_p, top_k, min_p, repetition_penalty, presence_penalty, top_n_sigma and adaptive_entropy
	}{
		{"nothing", Defaults{}, nil, sample.Params{Temperature: 1, TopP: 1, RepetitionPenalty: 1}, "default default default default default default default default"},
		{"preset", Defaults{}, preset, sample.Params{Temperature: 0.2, TopP: 0.9, RepetitionPenalty: 1}, "preset preset default default default default default default"},
		{"checkpoint alone", Defaults{Temperature: number(0.6), TopK: count(20)}, nil, sample.Params{Temperature: 0.6, TopP: 1, TopK: 20, RepetitionPenalty: 1},
			"generation_config.json default generation_config.json default default default default default"},
		{"both", Defaults{Temperature: number(0.6), Sample: &yes}, preset, sample.Params{Temperature: 0.6, TopP: 0.9, RepetitionPenalty: 1}, "generation_config.json preset default default default default default default"},
		{"zero is stated", Defaults{Temperature: number(0)}, preset, sample.Params{Temperature: 0, TopP: 0.9, RepetitionPenalty: 1}, "generation_config.json preset default default default default default default"},
		{"flags", Defaults{MinP: number(0.5)}, []Facts{{From: "flag", Operator: true, Sampling: Defaults{MinP: number(0.1), TopNSigma: number(1.5), MinEntropy: number(0.3)}}},
			sample.Params{Temperature: 1, TopP: 1, MinP: 0.1, TopNSigma: 1.5, MinEntropy: 0.3, RepetitionPenalty: 1}, "default default default flag default default flag flag"},
		{"operator", Defaults{Temperature: number(0.6), TopP: number(0.5)}, operator, sample.Params{Temperature: 0.4, TopP: 0.5, RepetitionPenalty: 1, PresencePenalty: 1}, "--model-facts generation_config.json default default default --model-facts default default"},
		{"operator against no sampling", Defaults{Sample: &no}, operator, sample.Params{Temperature: 0.4, TopP: 1, RepetitionPenalty: 1, PresencePenalty: 1}, "--model-facts default default default default --model-facts default default"},
		{"no sampling", Defaults{Sample: &no}, preset, sample.Params{Temperature: 0, TopP: 1, RepetitionPenalty: 1}, "generation_config.json: default default default default default default default"},
	}
	for _, c := range cases {
		text := Text{From: generationFile, Defaults: c.checkpoint, Facts: c.facts}
		if got := text.Params(); fmt.Sprint(got) != fmt.Sprint(usual(c.want)) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		var from []string
		for _, s := range text.Sampling() {
			first, _, _ := strings.Cut(s.From, " ")
			from = append(from, first)
		}
		if got := strings.Join(from, " "); got != c.from {
			t.Errorf("%s: from %q, want %q", c.name, got, c.from)
		}
	}
}

// Answers without thoughts are drawn as the publisher says of them, else as all are.
func TestPlainSampling(t *testing.T) {
	number := func(v float32) *float32 { return &v }
	no := false
	preset := Facts{From: "preset tiny", Sampling: Defaults{Temperature: number(0.6), MinP: number(0.1)}, Plain: Defaults{Temperature: number(0.7)}}
	operator := Facts{From: "--model-facts", Operator: true, Plain: Defaults{TopP: number(0.3)}}
	drawn := Defaults{MinP: number(0.2)}
	flags := Facts{From: "flag", Operator: true, Sampling: drawn, Plain: drawn}
	cases := []struct {
		name       string
		checkpoint Defaults
		facts      []Facts
		want       *sample.Params // nil: as all are
	}{
		{"nothing", Defaults{}, nil, nil},
		{"nothing of them", Defaults{}, []Facts{{Sampling: preset.Sampling}}, nil},
		{"publisher", Defaults{}, []Facts{preset}, &sample.Params{Temperature: 0.7, MinP: 0.1, TopP: 1, RepetitionPenalty: 1}},
		{"publisher before checkpoint", Defaults{Temperature: number(1), TopP: number(0.9)}, []Facts{preset}, &sample.Params{Temperature: 0.7, MinP: 0.1, TopP: 0.9, RepetitionPenalty: 1}},
		{"operator", Defaults{TopP: number(0.9)}, []Facts{operator, preset}, &sample.Params{Temperature: 0.7, MinP: 0.1, TopP: 0.3, RepetitionPenalty: 1}},
		{"no sampling", Defaults{Sample: &no}, []Facts{preset}, nil},
		{"flags", Defaults{}, []Facts{flags}, nil},
		{"flags before publisher", Defaults{}, []Facts{flags, preset}, &sample.Params{Temperature: 0.7, MinP: 0.2, TopP: 1, RepetitionPenalty: 1}},
	}
	for _, c := range cases {
		text := Text{From: generationFile, Defaults: c.checkpoint, Facts: c.facts}
		got := text.Plain()
		if (got == nil) != (c.want == nil) || got != nil && fmt.Sprint(*got) != fmt.Sprint(usual(*c.want)) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		if listed := len(text.PlainSampling()); (listed > 0) != (c.want != nil) {
			t.Errorf("%s: %d values are listed", c.name, listed)
		}
	}
}
