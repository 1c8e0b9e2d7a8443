package instance

import (
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

func TestSamplingOfGenerationConfig(t *testing.T) {
	with := func(change func(*sample.Params)) sample.Params {
		p := sample.Defaults()
		change(&p)
		return p
	}
	cases := []struct {
		name, file string
		want       sample.Params
		note       string
	}{
		{"nothing", `{}`, sample.Defaults(), ""},
		{"numbers", `{"temperature": 0.6, "top_p": 0.5, "top_k": 20, "min_p": 0.25, "repetition_penalty": 1.5, "do_sample": true}`, with(func(p *sample.Params) {
			p.Temperature, p.TopP, p.TopK, p.MinP, p.RepetitionPenalty = 0.6, 0.5, 20, 0.25, 1.5
		}), ""},
		{"other spellings", `{"temperature": "0.6", "top_p": 1, "top_k": 50.0, "do_sample": 1, "min_p": null}`, with(func(p *sample.Params) { p.Temperature, p.TopK = 0.6, 50 }), ""},
		{"greedy", `{"do_sample": false, "temperature": 0.9, "top_p": 0.5}`, with(func(p *sample.Params) { p.Temperature, p.TopP = 0, 0.5 }), ""},
		{"greedy in other spellings", `{"do_sample": "False", "temperature": 0.9}`, sample.Greedy(), ""},
		{"greedy by number", `{"do_sample": 0}`, sample.Greedy(), ""},
		{"greedy by temperature", `{"do_sample": true, "temperature": 0}`, sample.Greedy(), ""},
		{"temperature without do_sample", `{"temperature": 0.5}`, with(func(p *sample.Params) { p.Temperature = 0.5 }), ""},
		{"do_sample null", `{"do_sample": null, "temperature": 0.5}`, with(func(p *sample.Params) { p.Temperature = 0.5 }), ""},
		{"all tokens", `{"top_k": -1}`, sample.Defaults(), ""},
		{"the likeliest alone", `{"top_p": 0}`, with(func(p *sample.Params) { p.TopP = 1e-45 }), ""},
		{"negative", `{"temperature": -1}`, sample.Defaults(), "temperature is -1, which is -1, must be from 0 to 100: it is not used"},
		{"no number", `{"temperature": "warm", "top_k": 1.5, "top_p": [0.5]}`, sample.Defaults(), `temperature is "warm", which is no finite number`},
		{"out of range", `{"top_p": 7, "repetition_penalty": 0, "top_k": 1e30}`, sample.Defaults(), "top_p is 7"},
		{"infinite", `{"temperature": 1e400, "min_p": "NaN"}`, sample.Defaults(), "no finite number"},
		{"empty", ``, sample.Defaults(), "generation_config.json is no JSON object and is not used: unexpected end"},
		{"list", `[]`, sample.Defaults(), "is no JSON object and is not used: it is of type array"},
		{"cut off", `{"temperature": 0.5`, sample.Defaults(), "is no JSON object"},
		{"no number of JSON", `{"temperature": NaN}`, sample.Defaults(), "is no JSON object"},
		{"no truth", `{"do_sample": "maybe", "temperature": 0.5}`, with(func(p *sample.Params) { p.Temperature = 0.5 }), "neither true nor false"},
		{"no ids", `{"eos_token_id": [1.5]}`, sample.Defaults(), "eos_token_id is [1.5]"},
		{"on several lines", "{\"eos_token_id\": [\n  1.5\n]}", sample.Defaults(), "eos_token_id is [ 1.5 ]"},
	}
	for _, c := range cases {
		g, notes := parseGeneration(generationFile, []byte(c.file))
		got := g.Params()
		if got.Temperature != c.want.Temperature || got.TopP != c.want.TopP || got.TopK != c.want.TopK || got.MinP != c.want.MinP || got.RepetitionPenalty != c.want.RepetitionPenalty {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		if err := got.Validate(1); err != nil {
			t.Errorf("%s: requests would be refused: %v", c.name, err)
		}
		if all := strings.Join(notes, "\n"); !strings.Contains(all, c.note) || c.note == "" && all != "" {
			t.Errorf("%s: notes %q, want %q", c.name, all, c.note)
		}
	}
}

func FuzzGenerationConfig(f *testing.F) {
	f.Add([]byte(`{"temperature": "0.6", "top_k": 50.0, "do_sample": 1, "eos_token_id": [1, "2"]}`))
	f.Add([]byte(`{"temperature": -1e400, "top_p": "x", "eos_token_id": {}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		g, _ := parseGeneration(generationFile, file)
		if err := g.Params().Validate(1); err != nil {
			t.Fatalf("%q: requests would be refused: %v", file, err)
		}
	})
}
