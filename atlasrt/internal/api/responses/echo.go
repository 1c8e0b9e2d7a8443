package responses

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// echo is what an answer repeats of its request: fields of a JSON object, without its braces.
func echo(f *api.Fields, tools jsontree.Array, effort, sum string, text *jsontree.Object) []byte {
	null := jsontree.Null{}
	o := jsontree.NewObject()
	for _, field := range []struct {
		name  string
		usual jsontree.Value // where the request says nothing
	}{
		{"background", jsontree.Bool(false)}, {"instructions", null}, {"max_output_tokens", null}, {"max_tool_calls", null}, {"metadata", jsontree.NewObject()},
		{"parallel_tool_calls", jsontree.Bool(true)}, {"previous_response_id", null}, {"prompt_cache_key", null}, {"safety_identifier", null},
		{"store", jsontree.Bool(true)}, {"temperature", null}, {"tool_choice", jsontree.String("auto")}, {"top_logprobs", jsontree.Number("0")},
		{"top_p", null}, {"truncation", jsontree.String("disabled")}, {"user", null},
	} {
		value, given := f.Peek(field.name)
		if _, none := value.(jsontree.Null); !given || none {
			value = field.usual
		}
		o.Set(field.name, value)
	}
	o.Set("service_tier", jsontree.String("default"))
	reasoning := jsontree.NewObject()
	reasoning.Set("effort", null)
	if effort != "" {
		reasoning.Set("effort", jsontree.String(effort))
	}
	reasoning.Set("summary", null)
	if sum != "" {
		reasoning.Set("summary", jsontree.String(sum))
	}
	o.Set("reasoning", reasoning)
	o.Set("text", text)
	o.Set("tools", tools)
	b := jsontree.Append(nil, o)
	return b[1 : len(b)-1]
}
