package instance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

func TestCheckpointBeatsPreset(t *testing.T) {
	number := func(v float32) *float32 { return &v }
	count := func(v int32) *int32 { return &v }
	no, yes := false, true
	preset := Preset{Name: "tiny", Defaults: Defaults{Temperature: number(0.2), TopP: number(0.9)}}
	cases := []struct {
		name       string
		checkpoint Defaults
		preset     Preset
		want       sample.Params
		from       string // of temperature, top_p, top_k, min_p and repetition_penalty
	}{
		{"nothing", Defaults{}, Preset{}, sample.Params{Temperature: 1, TopP: 1, RepetitionPenalty: 1}, "default default default default default"},
		{"preset", Defaults{}, preset, sample.Params{Temperature: 0.2, TopP: 0.9, RepetitionPenalty: 1}, "preset preset default default default"},
		{"checkpoint alone", Defaults{Temperature: number(0.6), TopK: count(20)}, Preset{}, sample.Params{Temperature: 0.6, TopP: 1, TopK: 20, RepetitionPenalty: 1},
			"generation_config.json default generation_config.json default default"},
		{"both", Defaults{Temperature: number(0.6), Sample: &yes}, preset, sample.Params{Temperature: 0.6, TopP: 0.9, RepetitionPenalty: 1}, "generation_config.json preset default default default"},
		{"zero is stated", Defaults{Temperature: number(0)}, preset, sample.Params{Temperature: 0, TopP: 0.9, RepetitionPenalty: 1}, "generation_config.json preset default default default"},
		{"no sampling", Defaults{Sample: &no}, preset, sample.Params{Temperature: 0, TopP: 1, RepetitionPenalty: 1}, "generation_config.json: default default default default"},
	}
	for _, c := range cases {
		text := Text{From: generationFile, Defaults: c.checkpoint, Preset: c.preset}
		if got := text.Params(); fmt.Sprint(got) != fmt.Sprint(c.want) {
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
