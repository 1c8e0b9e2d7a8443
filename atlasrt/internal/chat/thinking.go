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

// ThinkingPolicy is what a model and its server make of what requests ask. The zero value gives every request what it asks for.
type ThinkingPolicy struct {
	Default   *bool  // whether the model thinks where a request says nothing; nil: its template decides
	Disabled  bool   // no request gets thoughts, whatever it asks
	Budget    int    // most tokens of thoughts where a request says nothing; 0: no bound
	MaxBudget int    // bounds what requests may ask for; 0: no bound
	Floor     int    // tokens of a request's most that are kept for what follows the thoughts
	Close     string // what is put at the end of thoughts that reach their budget, with the mark that closes them
}
