package chat

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Thinking is what a request asks of the model's thoughts, whatever dialect it came in, and what holds once a ThinkingPolicy was
// applied. The zero value leaves it to the model.
type Thinking struct {
	On     *bool  // nil: nothing was said
	Effort string // none, minimal, low, medium, high, xhigh, max; empty: nothing was said
	Budget *int   // most tokens of thoughts; nil: nothing was said
}

// Off tells whether there are to be no thoughts.
func (t Thinking) Off() bool { return t.On != nil && !*t.On }

// ThinkingPolicy is what a model and its server make of what requests ask. The zero value gives every request what it asks for.
type ThinkingPolicy struct {
	Default   *bool  // whether the model thinks where a request says nothing; nil: its template decides
	Disabled  bool   // no request gets thoughts, whatever it asks
	Budget    int    // most tokens of thoughts where a request says nothing; 0: no bound
	MaxBudget int    // bounds what requests may ask for; 0: no bound
	Floor     int    // tokens of a request's most that are kept for what follows the thoughts
	Close     string // what is put at the end of thoughts that reach their budget, with the mark that closes them
}

// Resolve is what holds for a request with so many tokens at most, 0 where it does not say. Known are the efforts that the model's
// template reads (Capabilities.Efforts): of another effort a budget is made. To resolve the result again changes neither On nor Effort.
func (p *ThinkingPolicy) Resolve(t Thinking, known []string, maxTokens int) Thinking {
	switch {
	case p.Disabled || t.Effort == "none" || t.Budget != nil && *t.Budget <= 0:
		t.On = new(false)
	case t.On == nil && t.Effort != "":
		t.On = new(true)
	case t.On == nil:
		t.On = p.Default
	}
	if t.Off() {
		return Thinking{On: t.On, Budget: new(0)}
	}
	if t.Budget == nil {
		most := shareOf(maxTokens, t.Effort)
		if most == 0 || slices.Contains(known, t.Effort) {
			most = p.Budget
		}
		if most > 0 {
			t.Budget = &most
		}
	}
	bound := func(most int) {
		if t.Budget == nil || *t.Budget > most {
			t.Budget = &most
		}
	}
	if p.MaxBudget > 0 {
		bound(p.MaxBudget)
	}
	if p.Floor > 0 && maxTokens > 0 {
		bound(max(maxTokens-p.Floor, 1)) // of 0 the next Resolve would make off
	}
	return t
}

// shareOf is how much of an answer may be thoughts of an effort; 0: all of it.
func shareOf(maxTokens int, effort string) int {
	percent := map[string]int{"minimal": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 95}[effort]
	if maxTokens == 0 || percent == 0 {
		return 0
	}
	return max(maxTokens/100*percent+maxTokens%100*percent/100, 1)
}

// Efforts are the words for how hard a model is to think, the least first.
func Efforts() []string { return []string{"minimal", "low", "medium", "high", "xhigh", "max"} }

// variables are what a template calls it. Families have different names for the switch, and each reads its own.
func (t Thinking) variables(c *Capabilities) *jsontree.Object {
	o := jsontree.NewObject()
	if t.On != nil {
		o.Set("enable_thinking", jsontree.Bool(*t.On)) // Qwen3, Nemotron-3, Gemma-4
		o.Set("thinking", jsontree.Bool(*t.On))        // DeepSeek-V3.1, Granite
	}
	effort := "" // gpt-oss, Mistral-Small-4
	switch {
	case c.effortSwitch && (t.Off() || t.Effort == "none"):
		effort = "none"
	case t.Off():
	case !c.Plain || slices.Contains(c.Efforts, t.Effort):
		effort = t.Effort
	case c.effortSwitch && t.On != nil:
		effort = "high"
	}
	if effort != "" {
		o.Set("reasoning_effort", jsontree.String(effort))
	}
	return o
}

// Within tells whether a prompt ends within what an opening mark begins and a closing one ends: whether the last opening mark stands
// behind the last closing one. Marks in what came from a request are text, and do not count.
func (p Prompt) Within(open, shut string) bool { return p.lastMark(open) > p.lastMark(shut) }

// lastMark is where a mark stands last that no byte of data belongs to; -1: nowhere.
func (p Prompt) lastMark(mark string) int {
	end, data := len(p.Text), len(p.Data)
	for {
		at := strings.LastIndex(p.Text[:end], mark)
		for data > 0 && p.Data[data-1].Start >= at+len(mark) {
			data--
		}
		if at < 0 || data == 0 || p.Data[data-1].End <= at {
			return at
		}
		end = at + len(mark) - 1
	}
}
