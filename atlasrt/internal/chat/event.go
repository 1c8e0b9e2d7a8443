package chat

// EventKind says what an Event carries.
type EventKind uint8

// Kinds of events.
const (
	EventStart     EventKind = iota // the first token of the request is there: before all other events, once
	EventPrompt                     // the prompt, which the answers to it begin with: of all choices of one prompt, once
	EventText                       // a piece of the answer
	EventReasoning                  // a piece of what the model thinks before it answers
	EventToolCall                   // a piece of a tool call
	EventFinish                     // the end of one choice, and its last event
	EventEnd                        // the end of the request, behind the ends of all choices
)

// Event is a piece of the answer to a request: all that the codecs of the APIs see of it. What fails is no event but an error.
type Event struct {
	Kind EventKind // tells which fields count

	// Choice says which answer it is about, counted through the choices of all prompts. Of EventPrompt it is the first one of
	// its prompt.
	Choice int

	Text string // of EventPrompt, EventText and EventReasoning; valid UTF-8

	// Tokens with log-probabilities, where they were asked for: what the model drew since the last event that has some. Events of
	// text, reasoning and calls may have them. Of EventPrompt they are the prompt's, whose first token follows nothing and has none.
	Tokens []Token

	Call   ToolCallDelta // of EventToolCall
	Finish Finish        // of EventFinish
	Match  string        // of EventFinish: the stop string that was met, where one was
	Usage  Usage         // of EventEnd: of the whole request; of EventStart: without what is generated
}

// Token is a token with its log-probabilities, which are of the model's own distribution: the log-softmax of its logits before
// temperature, penalties and biases.
type Token struct {
	Bytes   []byte     // what it adds to the text where it is shown
	Hidden  bool       // a control token that the text leaves out
	LogProb float32    // natural logarithm
	Top     []TopToken // likeliest first
}

// TopToken is a token that could have been.
type TopToken struct {
	Bytes   []byte  // as in Token
	LogProb float32 // natural logarithm
}

// ToolCallDelta is a piece of a tool call: the first one of a call has its name, each adds to the text of the arguments. A call goes
// on until another event than one of its own comes.
type ToolCallDelta struct {
	Index     int    // of the call in the answer, from 0
	Name      string // of the function; empty but in the first piece
	Arguments string // text that the model wrote for JSON: it may be broken, and ends where the answer was cut
}

// Finish says why a choice ended, in the words of logs and metrics; empty while it goes on.
type Finish string

// Reasons to end.
const (
	FinishStop      Finish = "stop"       // the model ended its turn, or a stop string was met
	FinishLength    Finish = "length"     // the most tokens of the answer, or the context, are used up
	FinishToolCalls Finish = "tool_calls" // the model waits for the results of its calls
)

// Usage counts the tokens of a request, over all of its prompts and choices.
type Usage struct {
	Prompt    int
	Cached    int // those of the prompts that a cache held
	Output    int // tokens that were generated
	Reasoning int // those of them that are thoughts
	Drafted   int // drafts of tokens that were computed, where a model drafts
	Accepted  int // those of them that were right
}
