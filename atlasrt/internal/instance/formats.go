package instance

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/parse"
)

// NoFormat is the name that stands for no format: nothing is looked for.
const NoFormat = "none"

// FromTemplate is what a format is said to come from that was found in the chat template.
const FromTemplate = "chat template"

// findFormats settles how thoughts and calls are written: as facts say, or else as the template writes them.
func (t *Text) findFormats() {
	t.shown = chat.Shown{}
	if t.Template != nil {
		t.shown = t.Template.Shown()
	}
	t.Reasoning = t.format("thoughts", thoughtFormat(t.Source), func(f *Facts) string { return f.Reasoning }, func(name string) bool { return parse.FindReasoning(name) != nil })
	t.Tools = t.format("calls of tools", callFormat(t.shown), func(f *Facts) string { return f.Tools }, func(name string) bool { return parse.FindTools(name) != nil })
}

// format is the first format of facts that can be read, or else that of the template; its name is NoFormat where there is none.
func (t *Text) format(what, template string, of func(*Facts) string, readable func(string) bool) Setting {
	for i := range t.Facts {
		f := &t.Facts[i]
		switch name := of(f); {
		case name == "":
		case name == NoFormat || readable(name):
			return Setting{what, name, f.From}
		default:
			t.note(fmt.Sprintf("%s: the format %s of %s cannot be read and is skipped", f.From, name, what))
		}
	}
	if template != "" && readable(template) {
		return Setting{what, template, FromTemplate}
	}
	return Setting{what, NoFormat, "default"}
}

// formats are those that conversations are read in.
func (t *Text) formats() completion.Formats {
	return completion.Formats{Reasoning: parse.FindReasoning(t.Reasoning.Value), Tools: parse.FindTools(t.Tools.Value)}
}

// thoughtFormat is the format of thoughts whose marks a template's source has; empty where it has none. Many templates only take thoughts
// out of earlier answers, so that no prompt would show them.
func thoughtFormat(source string) string {
	for _, name := range parse.ReasoningFormats() {
		if r := parse.FindReasoning(name); strings.Contains(source, r.Close) {
			return name
		}
	}
	return ""
}

// callFormat is the format of calls that a template writes; empty where it is none that is known.
func callFormat(s chat.Shown) string {
	has := func(marks ...string) bool {
		for _, mark := range marks {
			if !strings.Contains(s.Call, mark) {
				return false
			}
		}
		return true
	}
	bare, isBare := strings.CutPrefix(s.Call, s.Begin+`{"name": `)
	switch {
	case has("[TOOL_CALLS]"):
		return "mistral"
	case has("<minimax:tool_call>"):
		return "minimax"
	case has("<|tool_call>call:"):
		return "gemma4"
	case has("<function=", "<parameter="):
		return "qwen3_coder"
	case has("<tool_call>", `"name": `, `"arguments": `):
		return "hermes"
	case isBare && strings.Contains(bare, `"parameters": `):
		return "llama3_json"
	case isBare && strings.Contains(bare, `"arguments": `):
		return "json"
	}
	return ""
}

// closing is what ends thoughts that reach their budget: as facts say, or else as the template ends thoughts.
func (t *Text) closing() (text, from string) {
	text, from, ok := said(t.Facts, func(f *Facts) (string, bool) { return f.Close, f.Close != "" })
	r := parse.FindReasoning(t.Reasoning.Value)
	if ok || r == nil {
		return text, from
	}
	_, behind, _ := strings.Cut(t.shown.Thought, chat.ThoughtWord)
	before, after, ok := strings.Cut(behind, r.Close)
	if !ok || strings.TrimSpace(before) != "" {
		return r.Close, "default"
	}
	return before + r.Close + after[:len(after)-len(strings.TrimLeft(after, "\r\n"))], FromTemplate
}

// thinkingPolicy is what the model and its server make of what requests ask.
func (t *Text) thinkingPolicy() chat.ThinkingPolicy {
	p := chat.ThinkingPolicy{Disabled: t.Policy.NoThinking, MaxBudget: t.Policy.MaxBudget, Floor: t.Policy.Floor}
	p.Default, _ = t.thinks()
	p.Budget, _ = t.budget()
	p.Close, _ = t.closing()
	return p
}

// Answers lists how conversations are answered.
func (t *Text) Answers() []Setting {
	all := []Setting{t.Tools, t.Reasoning}
	on, from := t.thinks()
	thinks := "as the chat template decides"
	if on != nil {
		thinks = map[bool]string{true: "on", false: "off"}[*on]
	}
	if t.Template == nil || !t.Template.Capabilities().Switch {
		thinks += " (the template has no switch)"
	}
	if t.Policy.NoThinking {
		thinks, from = "off, whatever requests ask", "--disable-thinking"
	}
	budget, budgetFrom := t.budget()
	closing, closingFrom := t.closing()
	if closing != "" {
		closing = strconv.Quote(closing)
	}
	all = append(all, Setting{"thinking", thinks, from}, Setting{"thinking budget", count(budget), budgetFrom}, setting("most thinking budget", "--max-thinking-budget", t.Policy.MaxBudget, count(t.Policy.MaxBudget)),
		Setting{"thoughts are ended by", cmp.Or(closing, NoFormat), closingFrom}, setting("tokens kept for the text", "--thinking-floor", t.Policy.Floor, strconv.Itoa(t.Policy.Floor)),
		setting("most tokens with tools", "--tool-max-tokens", t.Policy.ToolTokens, count(t.Policy.ToolTokens)))
	return all
}

// setting is what a flag says; 0 says nothing.
func setting(name, flag string, value int, shown string) Setting {
	if value == 0 {
		flag = "default"
	}
	return Setting{name, shown, flag}
}

// count is a number of tokens of which 0 is no bound.
func count(tokens int) string {
	if tokens == 0 {
		return "no bound"
	}
	return strconv.Itoa(tokens)
}
