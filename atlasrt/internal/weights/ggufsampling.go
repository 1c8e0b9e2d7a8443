package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// samplingKeys are the keys of general.sampling that have a setting of generation_config.json, from which converters write them.
var samplingKeys = map[string]string{
	"temp": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "penalty_repeat": "repetition_penalty",
}

// ggufGeneration gives a GGUF file's general.sampling keys as a generation_config.json, nil where it has none. Notes say what
// is left out.
func ggufGeneration(file *gguf.File) (text []byte, notes []string) {
	t := &translator{file: file, prefix: "general.sampling."}
	values := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(samplingKeys)) {
		n, err := t.number(t.prefix + key)
		switch {
		case errors.Is(err, gguf.ErrAbsent):
		case err != nil:
			notes = append(notes, fmt.Sprintf("%v: it was left out", err))
		default:
			values[samplingKeys[key]] = n
		}
	}
	if len(values) > 0 {
		text, _ = json.Marshal(values) // numbers alone
	}
	return text, notes
}
