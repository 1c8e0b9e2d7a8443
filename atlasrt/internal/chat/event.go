package chat

// EventKind says what an Event carries.
type EventKind int

const (
	// EventText is a piece of the answer.
	EventText EventKind = iota
	// EventReasoning is a piece of what the model thinks before it answers.
	EventReasoning
	// EventToolCall is a piece of a tool call.
	EventToolCall
	// EventFinish ends an answer.
	EventFinish
	// EventError ends an answer that failed.
	EventError
)

// Event is one step of an answer: all that the codecs of the APIs see of it. Events of one answer come in order; the last one,
// and no other, is EventFinish or EventError.
type Event struct {
	Kind   EventKind
	Text   string        // of EventText and EventReasoning; valid UTF-8, never empty
	Call   ToolCallDelta // of EventToolCall
	Finish FinishReason  // of EventFinish
	Usage  Usage         // of EventFinish
	Err    error         // of EventError
}

// ToolCallDelta is a piece of a tool call: the first one of a call has its ID and name, each adds to the text of the arguments.
type ToolCallDelta struct {
	Index     int // of the call in the answer, from 0
	ID        string
	Name      string
	Arguments string // JSON text, possibly half of it
}

// FinishReason says why an answer ended.
type FinishReason int

const (
	// FinishStop: the model ended its turn, or a stop string was met.
	FinishStop FinishReason = iota
	// FinishLength: max_tokens or the context is used up.
	FinishLength
	// FinishToolCalls: the model waits for the results of its calls.
	FinishToolCalls
	// FinishCancelled: the client went away.
	FinishCancelled
)

// Usage counts the tokens of a request.
type Usage struct {
	PromptTokens    int
	CachedTokens    int // those of the prompt that a cache held
	OutputTokens    int
	ReasoningTokens int // those of the output that are reasoning
}
