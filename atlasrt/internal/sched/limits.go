package sched

import "fmt"

// Limits bound a step and the queue.
type Limits struct {
	BatchTokens   int // rows of a step; at least Sequences·Draws
	Sequences     int // sequences that run at the same time
	Draws         int // tokens that a step may draw of one sequence: the next one, and one behind each draft; at least 1
	Outputs       int // rows of a step whose logits are wanted; at least Sequences·Draws
	Context       int // tokens of a prompt and its answer together
	ChunkTokens   int // rows of one prompt in a step; 0: only BatchTokens bounds them
	Waiting       int // sequences that may wait
	WaitingTokens int // prompt tokens that may wait; one sequence may always wait alone
}

// QueueFull is returned by Add while too much waits already.
type QueueFull struct {
	Requests, RequestLimit int // sequences that would wait with the new ones, and how many may
	Tokens, TokenLimit     int // prompt tokens that would wait with the new ones, and how many may
}

// Error gives what would wait and what may.
func (e *QueueFull) Error() string {
	return fmt.Sprintf("the queue is full: %d requests with %d prompt tokens would wait, the limits are %d and %d (try again later)",
		e.Requests, e.Tokens, e.RequestLimit, e.TokenLimit)
}

// TooLong is returned for a sequence whose prompt and MaxTokens together, Tokens, are more than ever fit, Limit.
type TooLong struct{ Tokens, Limit int }

// Error gives both counts.
func (e *TooLong) Error() string {
	return fmt.Sprintf("prompt and max_tokens come to %d tokens, the limit is %d", e.Tokens, e.Limit)
}
