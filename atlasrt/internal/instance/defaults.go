package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

// Defaults are what a checkpoint's generation_config.json, or its general.sampling keys, say about sampling; nil where they say
// nothing.
type Defaults struct {
	// By the names of generation_config.json. Their meaning is that of the same fields of sample.Params.
	Temperature       *float32 `json:"temperature"`
	TopP              *float32 `json:"top_p"`
	TopK              *int32   `json:"top_k"`
	MinP              *float32 `json:"min_p"`
	RepetitionPenalty *float32 `json:"repetition_penalty"`
	PresencePenalty   *float32 `json:"presence_penalty"`
	Sample            *bool    `json:"do_sample"` // false: the likeliest token is taken
	TopNSigma         *float32 `json:"-"`         // only whoever runs the model says these
	MinEntropy        *float32 `json:"-"`
}

// Params are a request's sampling where it says nothing itself. do_sample false is greedy, whatever temperature is left
// over; without do_sample, published files that have a temperature mean it.
func (d Defaults) Params() sample.Params {
	p := sample.Defaults()
	if d.greedy() {
		p = sample.Greedy()
		d.Temperature = nil
	}
	set(&p.Temperature, d.Temperature)
	set(&p.TopP, d.TopP)
	set(&p.TopK, d.TopK)
	set(&p.MinP, d.MinP)
	set(&p.RepetitionPenalty, d.RepetitionPenalty)
	set(&p.PresencePenalty, d.PresencePenalty)
	set(&p.TopNSigma, d.TopNSigma)
	set(&p.MinEntropy, d.MinEntropy)
	return p
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// generation is what a generation_config.json says.
type generation struct {
	Defaults
	ends []int // eos_token_id
}

// generationFile and generationKeys are what settings of sampling are said to come from.
const (
	generationFile = "generation_config.json"
	generationKeys = "general.sampling" // of a GGUF file
)

// parseGeneration reads a generation_config.json, which from names. A field that makes no sense is left out and costs a note, and
// so does a file that is no JSON object: no model needs it.
func parseGeneration(from string, text []byte) (g generation, notes []string) {
	if text == nil {
		return g, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		why := err.Error()
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			why = "it is of type " + wrong.Value
		}
		return g, []string{fmt.Sprintf("%s is no JSON object and is not used: %s", from, why)}
	}
	readers := map[string]func(json.RawMessage) error{
		"temperature":        number(&g.Temperature, func(p *sample.Params) *float32 { return &p.Temperature }),
		"top_p":              number(&g.TopP, func(p *sample.Params) *float32 { return &p.TopP }),
		"min_p":              number(&g.MinP, func(p *sample.Params) *float32 { return &p.MinP }),
		"repetition_penalty": number(&g.RepetitionPenalty, func(p *sample.Params) *float32 { return &p.RepetitionPenalty }),
		"presence_penalty":   number(&g.PresencePenalty, func(p *sample.Params) *float32 { return &p.PresencePenalty }),
		"top_k":              func(value json.RawMessage) error { return readTopK(&g.TopK, value) },
		"do_sample":          func(value json.RawMessage) error { return readBool(&g.Sample, value) },
		"eos_token_id":       func(value json.RawMessage) error { return readIDs(&g.ends, value) },
	}
	for _, name := range slices.Sorted(maps.Keys(readers)) {
		value, ok := fields[name]
		if !ok || string(value) == "null" {
			continue
		}
		if err := readers[name](value); err != nil {
			notes = append(notes, fmt.Sprintf("%s: %s is %.40s, which %v: it is not used", from, name, strings.Join(strings.Fields(string(value)), " "), err))
		}
	}
	return g, notes
}

// float reads a number, or a string of one.
func float(value json.RawMessage) (float64, error) {
	text := string(value)
	if s, err := strconv.Unquote(text); err == nil {
		text = strings.TrimSpace(s)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, errors.New("is no finite number")
	}
	return n, nil
}

// number reads into a field what the sampler takes for it.
func number(into **float32, field func(*sample.Params) *float32) func(json.RawMessage) error {
	return func(value json.RawMessage) error {
		n, err := float(value)
		if err != nil {
			return err
		}
		p := sample.Defaults()
		*field(&p) = float32(n)
		if n == 0 && field(&p) == &p.TopP {
			p.TopP = math.SmallestNonzeroFloat32 // the likeliest token alone
		}
		if refused, ok := errors.AsType[*option.Error](p.Validate(1)); ok {
			return errors.New(refused.Reason)
		}
		*into = new(*field(&p))
		return nil
	}
}

// readTopK takes 0 and -1 for all tokens.
func readTopK(into **int32, value json.RawMessage) error {
	n, err := float(value)
	switch {
	case err != nil:
		return err
	case n != math.Trunc(n) || n < -1 || n > math.MaxInt32:
		return errors.New("is no count of tokens")
	}
	*into = new(max(int32(n), 0))
	return nil
}

// readBool takes true, 1, "true" and the like.
func readBool(into **bool, value json.RawMessage) error {
	b, err := strconv.ParseBool(strings.Trim(string(value), `"`))
	if err != nil {
		return errors.New("is neither true nor false")
	}
	*into = &b
	return nil
}

// readIDs takes one id or a list.
func readIDs(into *[]int, value json.RawMessage) error {
	var list []json.RawMessage
	if value[0] != '[' {
		list = append(list, value)
	} else if err := json.Unmarshal(value, &list); err != nil {
		return err
	}
	var ids []int
	for _, item := range list {
		n, err := float(item)
		if err != nil || n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
			return errors.New("is no id or list of ids")
		}
		ids = append(ids, int(n))
	}
	*into = ids
	return nil
}
