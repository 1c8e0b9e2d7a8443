package sched

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
)

// Finish is how a sequence ended.
type Finish int

// How a sequence ended.
const (
	Unfinished Finish = iota // it waits or runs
	Stop                     // it drew one of its end tokens
	Length                   // it generated MaxTokens tokens
	Cancelled                // Cancel was called
	Failed                   // its step failed, or there was nothing to draw
)

// Sequence is one request as the scheduler sees it.
type Sequence struct {
	Tokens    []int32 // the prompt, followed by what was generated
	MaxTokens int     // most tokens to generate, at least 1
	End       []int32 // tokens that end it
	Score     bool    // the logits of every token of the prompt are wanted
	Waits     bool    // the host reads its logits after each draw: no step is planned until it has
	Single    bool    // a step draws one token of it at most; may change before any Next
	Held      bool    // it keeps what it has and no step computes it; may change before any Next
	Salt      string  // prefixes are shared among sequences with the same salt
	Tag       int     // for the caller; the scheduler does not read it

	prompt   int // tokens of the prompt
	cached   int // of them, found in the cache
	accepted int // drafts of its last chunk that were right
	finish   Finish
	err      error
	blocks   *cache.Sequence // what it holds; nil until it first runs

	drew   uint64 // the newest step that draws of it, from 1; 0: none
	number int    // its number there among the chunks that draw

	// Of steps in flight:
	ahead   int // rows that count at least
	slack   int // and drafts, which may count
	pending int // chunks that draw: as many tokens come at least
}

// Prompt is how many of Tokens were the prompt.
func (s *Sequence) Prompt() int { return s.prompt }

// Generated are the tokens after the prompt.
func (s *Sequence) Generated() []int32 { return s.Tokens[s.prompt:] }

// Cached is how many tokens of the prompt were found in the cache when the sequence first ran.
func (s *Sequence) Cached() int { return s.cached }

// Finish is how the sequence ended, and the error if it failed.
func (s *Sequence) Finish() (Finish, error) { return s.finish, s.err }

// Blocks is the block table that covers every token computed so far and in the current plan.
func (s *Sequence) Blocks() []int32 { return s.blocks.Blocks() }

// Slot is where the sequence's state lies; negative where the cache has no slots.
func (s *Sequence) Slot() int32 { return s.blocks.Slot() }

// length is how many tokens there are at least when the steps in flight are done.
func (s *Sequence) length() int { return len(s.Tokens) + s.pending }

// computed is how many tokens are computed at least when the steps in flight are done.
func (s *Sequence) computed() int { return s.blocks.Committed() + s.ahead }

// remaining is how many tokens no step computes yet. That is exact: where more are drawn more are computed.
func (s *Sequence) remaining() int { return s.length() - s.computed() }

// generated is how many tokens are generated at most when the steps in flight are done.
func (s *Sequence) generated() int { return s.length() + s.slack - s.prompt }

// full tells whether MaxTokens may be reached with the tokens that are being drawn.
func (s *Sequence) full() bool { return s.generated() >= s.MaxTokens }

// leave notes that a step in flight computes chunk c.
func (s *Sequence) leave(c *Chunk) {
	s.ahead += c.known()
	s.slack += c.Drafts()
	s.pending += min(c.Draws, 1)
}

// land notes that the step of chunk c is done.
func (s *Sequence) land(c *Chunk) {
	s.ahead -= c.known()
	if !c.Dropped {
		s.slack -= c.Drafts()
		s.pending -= min(c.Draws, 1)
	}
}

// scoring tells whether the logits of the prompt are still wanted.
func (s *Sequence) scoring() bool { return s.Score && s.length() == s.prompt }

// most is how many tokens can be in the cache at the end: the last token that is generated is never computed.
func (s *Sequence) most() int { return len(s.Tokens) + s.MaxTokens - 1 }

// append takes a drawn token and tells whether it ends the sequence.
func (s *Sequence) append(token int32) Finish {
	s.Tokens = append(s.Tokens, token)
	switch {
	case slices.Contains(s.End, token):
		return Stop
	case len(s.Generated()) >= s.MaxTokens:
		return Length
	}
	return Unfinished
}
