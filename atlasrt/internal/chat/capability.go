package chat

import (
	"context"
	"strings"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// Capabilities are what a template does with conversations, found by rendering small ones and looking for their texts.
type Capabilities struct {
	Plain              bool   // renders one user turn; where false nothing else is known, and conversations pass as they are
	EmptyTools         bool   // wants an empty list where there are no tools, and not None
	Parts              bool   // takes the text of a message as a list of parts only
	System             bool   // keeps the text of a system message that comes first
	Systems            bool   // keeps those of several in a row
	LateSystem         bool   // keeps that of a system message that comes after other turns, in its place
	Developer          bool   // has a role developer, told apart from a role that it cannot know
	RepeatedUsers      bool   // takes user turns in a row
	RepeatedAssistants bool   // takes assistant turns in a row
	Tools              bool   // shows the tools that there are
	ToolCalls          bool   // shows the calls of an assistant message
	ToolRole           string // the role of their results: tool, function or ipython; empty: it has none
	Function           bool   // has a role function, told apart from a role that it cannot know
	ArgumentsAsText    bool   // wants the arguments of calls as JSON text, and not as an object
	ShortCallIDs       bool   // takes only call ids of nine letters and digits
	CallText           bool   // keeps the text of an assistant message that has calls
	NullContent        bool   // takes null as the content of such a message
	EmptyContent       bool   // takes the empty text as the content of such a message
	ParallelCalls      bool   // takes several calls in one message

	Switch   bool     // can be told whether the model is to think
	Efforts  []string // tells these words for how hard it is to think from others
	Thoughts string   // what it calls those of earlier turns where it shows them: a field of messages, or ThoughtParts; empty: it does not

	effortSwitch bool // the effort "none" is off, and another is on
	acrossCalls  bool // turns in a row are joined where calls and results stand between them too
}

func (c *Capabilities) form() form {
	return form{emptyTools: c.EmptyTools, argumentsText: c.ArgumentsAsText, thoughts: c.Thoughts}
}

// Texts of the trials. They are words that no template has.
const (
	userWord, secondWord, assistantWord, systemWord, lateWord = "qzuser", "qzsecond", "qzassistant", "qzsystem", "qzlate"
	toolWord, nameWord, keyWord, valueWord, roleWord          = "qzresult", "qzname", "qzkey", "qzvalue", "qzrole"

	longID, shortID = "call_qz0123456789abcdef", "qz1234567"
)

// trialTime is what the trials show as the date.
var trialTime = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// trial renders small conversations in the form that was found so far.
type trial struct {
	template *Template
	can      Capabilities
}

// try finds out what a template can do.
func try(t *Template) Capabilities {
	y := &trial{template: t}
	if !y.plain() {
		return Capabilities{System: true, Systems: true, LateSystem: true, RepeatedUsers: true, RepeatedAssistants: true,
			Tools: true, ToolCalls: true, ToolRole: "tool", Function: true, CallText: true, NullContent: true, EmptyContent: true, ParallelCalls: true}
	}
	c := &y.can
	c.System = y.keeps(system(systemWord), user(userWord))
	c.Systems = c.System && y.keeps(system(systemWord), system(lateWord), user(userWord))
	late, ok := y.render(user(userWord), assistant(assistantWord), system(lateWord), user(secondWord))
	c.LateSystem = ok && hasAll(late, userWord, secondWord) && strings.Contains(late[strings.Index(late, assistantWord)+1:], lateWord) &&
		strings.Contains(late, assistantWord)
	c.Developer = y.knows("developer", func(role string) []Message { return []Message{says(role, systemWord), user(userWord)} })
	c.RepeatedUsers = y.keeps(user(userWord), user(secondWord)) && y.keeps(user(userWord), assistant(assistantWord), user(secondWord), user(lateWord))
	c.RepeatedAssistants = y.keeps(user(userWord), assistant(assistantWord), assistant(lateWord), user(secondWord))
	listed, ok := y.ask(&Request{Messages: []Message{user(userWord)}, Tools: []Tool{trialTool()}, AddGenerationPrompt: true})
	c.Tools = ok && strings.Contains(listed, nameWord)
	y.tools()
	y.thinking()
	return *c
}

func says(role, text string) Message { return Message{Role: role, Content: Content{Text: text}} }
func system(text string) Message     { return says("system", text) }
func user(text string) Message       { return says("user", text) }
func assistant(text string) Message  { return says("assistant", text) }

// trialTool is a tool as clients declare them: some templates take no other.
func trialTool() Tool {
	parameter, properties, parameters := jsontree.NewObject(), jsontree.NewObject(), jsontree.NewObject()
	parameter.Set("type", jsontree.String("string"))
	parameter.Set("description", jsontree.String(keyWord))
	properties.Set(keyWord, parameter)
	parameters.Set("type", jsontree.String("object"))
	parameters.Set("properties", properties)
	parameters.Set("required", jsontree.Array{jsontree.String(keyWord)})
	return Tool{Name: nameWord, Description: nameWord, Parameters: parameters}
}

// calling is an assistant message with a call.
func calling(content Content, id string) Message {
	return Message{Role: "assistant", Content: content, ToolCalls: []ToolCall{{ID: id, Name: nameWord, Arguments: `{"` + keyWord + `": "` + valueWord + `"}`}}}
}

// result is the message of a role with what a call gave.
func result(role, id string) Message {
	return Message{Role: role, Content: Content{Text: toolWord}, Name: nameWord, ToolCallID: id}
}

func (y *trial) render(messages ...Message) (string, bool) {
	return y.ask(&Request{Messages: messages, AddGenerationPrompt: true})
}

// ask renders a request whose texts are no parts yet.
func (y *trial) ask(r *Request) (string, bool) {
	if y.can.Parts {
		for i, m := range r.Messages {
			if !m.Content.Null {
				r.Messages[i].Content = Content{Parts: []Part{{Type: "text", Text: m.Content.Text}}}
			}
		}
	}
	p, err := y.template.renderAs(context.Background(), &y.can, r, trialTime)
	return p.Text, err == nil
}

// keeps says whether the texts of all messages show up.
func (y *trial) keeps(messages ...Message) bool {
	texts := make([]string, len(messages))
	for i := range messages {
		texts[i] = messages[i].Content.Text
	}
	out, ok := y.render(messages...)
	return ok && hasAll(out, texts...)
}

func hasAll(text string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// knows says whether the template treats a role otherwise than one that nobody knows, and keeps its text.
func (y *trial) knows(role string, conversation func(role string) []Message) bool {
	if !y.keeps(conversation(role)...) {
		return false
	}
	known, _ := y.render(conversation(role)...)
	other, ok := y.render(conversation(roleWord)...)
	return !ok || strings.ReplaceAll(other, roleWord, role) != known
}

// plain finds the form in which one user turn renders.
func (y *trial) plain() bool {
	for _, c := range []Capabilities{{}, {EmptyTools: true}, {Parts: true}, {Parts: true, EmptyTools: true}} {
		c.Plain = true
		if y.can = c; y.keeps(user(userWord)) {
			return true
		}
	}
	return false
}

// tools finds out about calls and their results.
func (y *trial) tools() {
	c := &y.can
	for _, id := range []string{longID, shortID} {
		for _, role := range []string{"tool", "function", "ipython"} {
			for _, content := range []Content{{}, {Null: true}} {
				conversation := func(role string, content Content) []Message {
					return []Message{user(userWord), calling(content, id), result(role, id)}
				}
				if !y.calls(func() []Message { return conversation(role, content) }, toolWord) {
					continue
				}
				c.ToolCalls, c.ToolRole, c.ShortCallIDs = true, role, id == shortID
				c.Function = y.knows("function", func(role string) []Message { return conversation(role, content) })
				y.besideCalls(func(content Content) []Message { return conversation(role, content) }, toolWord)
				c.ParallelCalls = y.parallel(id, role, content)
				return
			}
		}
	}
	alone := func(content Content) []Message { return []Message{user(userWord), calling(content, longID)} }
	for _, content := range []Content{{}, {Null: true}} {
		if y.calls(func() []Message { return alone(content) }) {
			c.ToolCalls = true
			y.besideCalls(alone)
			break
		}
	}
	for _, role := range []string{"tool", "function", "ipython"} {
		if y.keeps(user(userWord), assistant(assistantWord), result(role, longID)) {
			c.ToolRole = role
			break
		}
	}
}

// calls says whether the call of a conversation shows up, and keeps the better form of its arguments. A mapping that is
// printed as Python prints one was meant to be text.
func (y *trial) calls(conversation func() []Message, words ...string) bool {
	words = append(words, nameWord, valueWord)
	y.can.ArgumentsAsText = false
	object, ok := y.render(conversation()...)
	shown := ok && hasAll(object, words...)
	if shown && !strings.Contains(object, "{'"+keyWord) {
		return true
	}
	y.can.ArgumentsAsText = true
	if text, ok := y.render(conversation()...); ok && hasAll(text, append(words, `{"`+keyWord+`": "`+valueWord+`"}`)...) {
		return true
	}
	y.can.ArgumentsAsText = false
	return shown
}

// parallel says whether two calls in one message, and their results, show up.
func (y *trial) parallel(id, role string, content Content) bool {
	other := id[:len(id)-1] + "0"
	m := calling(content, id)
	m.ToolCalls = append(m.ToolCalls, ToolCall{ID: other, Name: secondWord, Arguments: "{}"})
	last := result(role, other)
	last.Name, last.Content.Text = secondWord, lateWord
	text, ok := y.render(user(userWord), m, result(role, id), last)
	return ok && hasAll(text, nameWord, valueWord, toolWord, secondWord, lateWord)
}

// besideCalls finds out what an assistant message may have beside calls.
func (y *trial) besideCalls(conversation func(Content) []Message, words ...string) {
	words = append(words, nameWord, valueWord)
	shown := func(content Content, more ...string) (string, bool) {
		text, ok := y.render(conversation(content)...)
		return text, ok && hasAll(text, append(more, words...)...)
	}
	c := &y.can
	_, c.CallText = shown(Content{Text: assistantWord}, assistantWord)
	empty, ok := shown(Content{})
	c.EmptyContent = ok
	null, ok := shown(Content{Null: true})
	c.NullContent = ok && (!c.EmptyContent || strings.Count(null, "None") == strings.Count(empty, "None"))
}
