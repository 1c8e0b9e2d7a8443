package chat

import (
	"context"
	"strings"
)

// Shown is what a template writes of an assistant's turns: as its model has learned to write them.
type Shown struct {
	Begin   string // what stands behind a question, for the model to go on from
	Call    string // what does where the model called a tool, up to the tool's result; empty: the template shows no calls
	Thought string // what does where it thought ThoughtWord and answered; empty: the template shows no thoughts
}

// ThoughtWord stands for what the model thought.
const ThoughtWord = "qzthought"

// Shown renders small conversations to see what the template makes of them.
func (t *Template) Shown() Shown {
	s := Shown{Begin: t.behind(Request{Messages: []Message{user(userWord)}})}
	call := calling(Content{Null: true}, longID)
	for _, tools := range [][]Tool{{trialTool()}, nil} {
		if text := t.behind(Request{Tools: tools, Messages: []Message{user(userWord), call, result("tool", longID)}}); s.Call == "" && t.can.ToolCalls && hasAll(text, nameWord, valueWord) {
			s.Call = text
		}
		for _, k := range []Thinking{{On: new(true)}, {On: new(true), Effort: "high"}} {
			thought := assistant(assistantWord)
			thought.Reasoning = ThoughtWord
			for _, turns := range [][]Message{{thought}, {{Role: "assistant", Reasoning: ThoughtWord, ToolCalls: call.ToolCalls}, result("tool", longID)}} {
				text := t.behind(Request{Tools: tools, Thinking: k, Messages: append([]Message{user(userWord)}, turns...)})
				if s.Thought == "" && hasAll(text, ThoughtWord) {
					s.Thought = text
				}
			}
		}
	}
	return s
}

// behind is what the prompt has behind the question, up to the result of a call; empty where the template refuses it.
func (t *Template) behind(r Request) string {
	r.AddGenerationPrompt = true
	p, err := t.Prompt(context.Background(), &r, trialTime)
	if err != nil {
		return ""
	}
	text := p.Text
	if at := strings.LastIndex(text, userWord); at >= 0 {
		text, _, _ = strings.Cut(text[at+len(userWord):], toolWord)
	}
	return text
}
