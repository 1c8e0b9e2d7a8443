package chat

import "github.com/atlas-inference/atlas/atlasrt/internal/jsontree"

// Thinking is what a request asks of the model's thoughts, whatever dialect it came in. The zero value leaves it to the model.
type Thinking struct {
	On     *bool  // nil: nothing was said
	Effort string // none, minimal, low, medium, high, xhigh, max; empty: nothing was said
	Budget *int   // most tokens of thoughts; nil: nothing was said
}

// variables are what templates call it: families have different names, and read their own.
func (t Thinking) variables() *jsontree.Object {
	o := jsontree.NewObject()
	if t.On != nil {
		o.Set("enable_thinking", jsontree.Bool(*t.On)) // Qwen3, Nemotron-3, Gemma-4
		o.Set("thinking", jsontree.Bool(*t.On))        // DeepSeek-V3.1, Granite
	}
	if t.Effort != "" {
		o.Set("reasoning_effort", jsontree.String(t.Effort)) // gpt-oss, Mistral-Small-4
	}
	return o
}
