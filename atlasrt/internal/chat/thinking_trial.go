package chat

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// ThoughtParts is the Capabilities.Thoughts of a template that shows thoughts as parts of a message, of type thinking.
const ThoughtParts = "parts"

// effortWord is a word for how hard to think that no template knows.
const effortWord = "qzeffort"

// thinking finds out what a template knows of thoughts.
func (y *trial) thinking() {
	y.switches()
	y.efforts()
	y.can.Thoughts = y.thoughts()
}

// with renders one user turn with a variable.
func (y *trial) with(name string, value jsontree.Value, thinking Thinking) (string, bool) {
	variables := jsontree.NewObject()
	variables.Set(name, value)
	return y.ask(&Request{Messages: []Message{user(userWord)}, AddGenerationPrompt: true, Thinking: thinking, Variables: variables})
}

// switches finds out whether thinking can be told on and off.
func (y *trial) switches() {
	c := &y.can
	for _, name := range []string{"enable_thinking", "thinking"} {
		on, first := y.with(name, jsontree.Bool(true), Thinking{})
		off, second := y.with(name, jsontree.Bool(false), Thinking{})
		c.Switch = c.Switch || first && second && on != off
	}
}

// efforts finds out which words for efforts mean something. A word that is shown as it is is known, but where any word is shown none of
// them is a switch.
func (y *trial) efforts() {
	c := &y.can
	on := Thinking{On: new(true)}
	other, took := y.with("reasoning_effort", jsontree.String(effortWord), on)
	tells := func(effort string) (string, bool) {
		text, ok := y.with("reasoning_effort", jsontree.String(effort), on)
		return text, ok && (!took || text != other)
	}
	for _, effort := range Efforts() {
		if _, ok := tells(effort); ok {
			c.Efforts = append(c.Efforts, effort)
		}
	}
	off, ok := tells("none")
	if high, takes := y.with("reasoning_effort", jsontree.String("high"), on); ok && takes && high != off && !strings.Contains(other, effortWord) {
		c.effortSwitch, c.Switch = true, true
	}
}

// thoughts is what the template calls those of earlier turns.
func (y *trial) thoughts() string {
	c := &y.can
	defer func(before string) { c.Thoughts = before }(c.Thoughts)
	for _, name := range []string{"reasoning_content", "reasoning", "thinking", "thought", ThoughtParts} {
		c.Thoughts = name
		for _, last := range []Message{calling(Content{}, longID), assistant(assistantWord)} {
			if last.Reasoning = ThoughtWord; len(last.ToolCalls) > 0 && !c.ToolCalls {
				continue
			}
			messages := []Message{user(userWord), last}
			if id := longID; len(last.ToolCalls) > 0 && c.ToolRole != "" {
				if c.ShortCallIDs {
					id = shortID
				}
				last.ToolCalls[0].ID = id
				messages = append(messages, result(c.ToolRole, id))
			}
			text, ok := y.ask(&Request{Messages: messages, AddGenerationPrompt: len(messages) > 2, Thinking: Thinking{On: new(true)}})
			if printed := name == ThoughtParts && (strings.Contains(text, "'type'") || strings.Contains(text, `"type": "thinking"`)); ok && !printed && strings.Contains(text, ThoughtWord) {
				return name
			}
		}
	}
	return ""
}
