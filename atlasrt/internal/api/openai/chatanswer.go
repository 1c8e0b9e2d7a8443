package openai

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// chatAnswer writes the answer to a chat request.
type chatAnswer struct {
	stream
	name      string // of the answer
	head      api.Head
	events    events
	reasoning []string // fields that have thoughts; none: they are left out
	older     bool     // a call is a function_call
	choices   []chatState
	usage     usage
}

// chatState is a choice on its way.
type chatState struct {
	started  bool // it has told its role
	last     chat.EventKind
	blocks   map[chat.EventKind]bool // kinds of text that it has
	text     strings.Builder
	thoughts strings.Builder
	calls    []*callState
	logProbs *chatLogProbs
	finish   string
}

// apart gives the text of an event, with a blank line before it where a block of its kind came earlier and others after that: clients
// know the blocks of a kind as one text.
func (s *chatState) apart(event *chat.Event) string {
	if event.Text == "" && event.Kind != chat.EventToolCall {
		return ""
	}
	gap := ""
	if s.blocks[event.Kind] && s.last != event.Kind {
		gap = "\n\n"
	}
	if s.blocks == nil {
		s.blocks = map[chat.EventKind]bool{}
	}
	s.last, s.blocks[event.Kind] = event.Kind, true
	return gap + event.Text
}

// callState is a call on its way.
type callState struct {
	index     int
	name      string
	arguments strings.Builder
}

type chatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   usage        `json:"usage"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  chatMessage   `json:"message"`
	LogProbs *chatLogProbs `json:"logprobs"`
	Finish   string        `json:"finish_reason"`
}

// chatMessage has thoughts under one name or both, and no text beside calls where there is none.
type chatMessage struct {
	Role             string        `json:"role"`
	Content          *string       `json:"content"`
	Refusal          *string       `json:"refusal"`
	ReasoningContent string        `json:"reasoning_content,omitempty"`
	Reasoning        string        `json:"reasoning,omitempty"`
	ToolCalls        []chatCall    `json:"tool_calls,omitempty"`
	FunctionCall     *chatFunction `json:"function_call,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Answer implements api.Dialect.
func (c Chat) Answer(r *api.Request, h api.Head) api.Answer {
	a := &chatAnswer{name: "chatcmpl-" + h.ID, head: h, older: r.FunctionCall, choices: make([]chatState, r.Choices())}
	if !r.HideReasoning {
		a.reasoning = c.Reasoning.names()
	}
	h.ID = a.name
	a.events = newEvents("chat.completion.chunk", h, r.StreamUsage)
	return a
}

// callID names a call.
func (a *chatAnswer) callID(choice, call int) string { return "call_" + a.head.CallID(choice, call) }

// Append implements api.Answer: the role of a choice comes first, then its pieces, then why it ended; behind all choices the
// usage, where it was asked for, and the end of the stream.
func (a *chatAnswer) Append(b []byte, of []chat.Event) []byte {
	e := &a.events
	for i := range of {
		event := &of[i]
		switch event.Kind {
		case chat.EventStart:
			continue
		case chat.EventEnd:
			return e.end(b, event.Usage)
		}
		if state := &a.choices[event.Choice]; !state.started {
			state.started = true
			b = e.index(b, event.Choice)
			b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null`...)
			b = e.finish(b, "")
		}
		b = a.piece(b, event)
	}
	return b
}

// piece appends the event of a choice.
func (a *chatAnswer) piece(b []byte, event *chat.Event) []byte {
	text := a.choices[event.Choice].apart(event)
	switch event.Kind {
	case chat.EventText:
		b = a.open(b, event)
		b = append(b, `"content":`...)
		return a.close(jsontree.AppendString(b, text), event)
	case chat.EventReasoning:
		if len(a.reasoning) == 0 && event.Tokens == nil {
			return b
		}
		b = a.open(b, event)
		for i, name := range a.reasoning {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, '"'), name...), `":`...)
			b = jsontree.AppendString(b, text)
		}
		return a.close(b, event)
	case chat.EventToolCall:
		return a.call(b, event)
	case chat.EventFinish:
		b = a.events.index(b, event.Choice)
		b = append(b, `,"delta":{},"logprobs":null`...)
		return a.events.finish(b, a.finish(event.Finish))
	default:
		panic(fmt.Sprintf("BUG: an event of kind %d in a chat", event.Kind))
	}
}

// open appends an event up to what its delta has.
func (a *chatAnswer) open(b []byte, event *chat.Event) []byte {
	return append(a.events.index(b, event.Choice), `,"delta":{`...)
}

// close appends the end of a delta, and of its event.
func (a *chatAnswer) close(b []byte, event *chat.Event) []byte {
	b = append(b, `},"logprobs":`...)
	if event.Tokens == nil {
		b = append(b, "null"...)
	} else {
		b = api.AppendJSON(b, chatLogProbs{Content: LogProbs(event.Tokens)})
	}
	return a.events.finish(b, "")
}

// call appends a piece of a call: first its name, in an event of its own, then what there is of its arguments.
func (a *chatAnswer) call(b []byte, event *chat.Event) []byte {
	call, rest := &event.Call, *event
	if call.Name != "" {
		b = a.open(b, event)
		b = a.function(b, call.Index, a.callID(event.Choice, call.Index), call.Name, "")
		b = a.close(b, event)
		rest.Tokens = nil
	}
	if call.Arguments == "" && rest.Tokens == nil {
		return b
	}
	b = a.open(b, &rest)
	b = a.function(b, call.Index, "", "", call.Arguments)
	return a.close(b, &rest)
}

// function appends a piece of a call in the form that the client knows. A later piece has no name.
func (a *chatAnswer) function(b []byte, index int, id, name, arguments string) []byte {
	if a.older {
		b = append(b, `"function_call":{`...)
	} else {
		b = append(b, `"tool_calls":[{"index":`...)
		b = strconv.AppendInt(b, int64(index), 10)
		if name != "" {
			b = append(b, `,"id":`...)
			b = jsontree.AppendString(b, id)
			b = append(b, `,"type":"function"`...)
		}
		b = append(b, `,"function":{`...)
	}
	if name != "" {
		b = append(b, `"name":`...)
		b = jsontree.AppendString(b, name)
		b = append(b, ',')
	}
	b = append(b, `"arguments":`...)
	b = append(jsontree.AppendString(b, arguments), '}')
	if !a.older {
		b = append(b, "}]"...)
	}
	return b
}

// finish is the word for an end.
func (a *chatAnswer) finish(f chat.Finish) chat.Finish {
	if a.older && f == chat.FinishToolCalls {
		return "function_call"
	}
	return f
}

// Add implements api.Answer.
func (a *chatAnswer) Add(of []chat.Event) {
	for i := range of {
		event := &of[i]
		to := &a.choices[event.Choice]
		switch event.Kind {
		case chat.EventStart:
		case chat.EventText:
			to.text.WriteString(to.apart(event))
		case chat.EventReasoning:
			to.thoughts.WriteString(to.apart(event))
		case chat.EventToolCall:
			to.apart(event)
			if event.Call.Name != "" {
				to.calls = append(to.calls, &callState{index: event.Call.Index, name: event.Call.Name})
			}
			to.calls[len(to.calls)-1].arguments.WriteString(event.Call.Arguments)
		case chat.EventFinish:
			to.finish = string(a.finish(event.Finish))
		case chat.EventEnd:
			a.usage = usageOf(event.Usage)
		default:
			panic(fmt.Sprintf("BUG: an event of kind %d in a chat", event.Kind))
		}
		if event.Tokens != nil {
			if to.logProbs == nil {
				to.logProbs = &chatLogProbs{}
			}
			to.logProbs.Content = append(to.logProbs.Content, LogProbs(event.Tokens)...)
		}
	}
}

// Body implements api.Answer.
func (a *chatAnswer) Body() []byte {
	choices := make([]chatChoice, len(a.choices))
	for i := range a.choices {
		state := &a.choices[i]
		choices[i] = chatChoice{Index: i, Message: a.message(i, state), LogProbs: state.logProbs, Finish: state.finish}
	}
	return api.AppendJSON(nil, chatResponse{a.name, "chat.completion", a.head.Created, a.head.Model, choices, a.usage})
}

// message is what a choice says.
func (a *chatAnswer) message(choice int, of *chatState) chatMessage {
	m := chatMessage{Role: "assistant"}
	if text := of.text.String(); text != "" || len(of.calls) == 0 {
		m.Content = &text
	}
	for _, name := range a.reasoning {
		if name == string(ReasoningContent) {
			m.ReasoningContent = of.thoughts.String()
		} else {
			m.Reasoning = of.thoughts.String()
		}
	}
	for _, call := range of.calls {
		function := chatFunction{call.name, call.arguments.String()}
		if a.older {
			m.FunctionCall = &function
			continue
		}
		m.ToolCalls = append(m.ToolCalls, chatCall{a.callID(choice, call.index), "function", function})
	}
	return m
}
