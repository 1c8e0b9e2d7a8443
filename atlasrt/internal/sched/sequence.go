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
	Stop                     // it sampled one of its end tokens
	Length                   // it generated MaxTokens tokens
	Cancelled                // Cancel was called
	Failed                   // its step failed, or there was nothing to sample
)

// Sequence is one request as the scheduler sees it.
type Sequence struct {
	Tokens    []int32 // the prompt, followed by what was generated
	MaxTokens int     // most tokens to generate, at least 1
	End       []int32 // tokens that end it
	Score     bool    // the logits of every token of the prompt are wanted
	Waits     bool    // the host reads its logits after each sample: no step is planned until it has
	Salt      string  // prefixes are shared among sequences with the same salt
	Tag       int     // for the caller; the scheduler does not read it

	prompt int // tokens of the prompt
	cached int // of them, found in the cache
	finish Finish
	err    error
	blocks *cache.Sequence // what it holds; nil until it first runs

	// Of steps in flight:
	ahead   int  // tokens that they compute
	pending bool // the token after the last one is being sampled
	sample  int  // its number among the samples of the newest step
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

// length is how many tokens there are, one that is being sampled included.
func (s *Sequence) length() int {
	if s.pending {
		return len(s.Tokens) + 1
	}
	return len(s.Tokens)
}

// computed is how many tokens are computed or being computed.
func (s *Sequence) computed() int { return s.blocks.Committed() + s.ahead }

// remaining is how many tokens no step computes yet.
func (s *Sequence) remaining() int { return s.length() - s.computed() }

// full tells whether MaxTokens is reached with the token that is being sampled.
func (s *Sequence) full() bool { return s.length()-s.prompt >= s.MaxTokens }

// leave notes that a step in flight computes chunk c. sample is the number of its sample in the step, where it has one.
func (s *Sequence) leave(c Chunk, sample int) {
	s.ahead += c.Rows
	s.pending, s.sample = c.Sample, sample
}

// land notes that the step of chunk c is done. A token stays pending where a later step, which samples the next one, is in flight.
func (s *Sequence) land(c Chunk) {
	s.ahead -= c.Rows
	s.pending = s.pending && s.ahead > 0
}

// scoring tells whether the logits of the prompt are still wanted.
func (s *Sequence) scoring() bool { return s.Score && s.length() == s.prompt }

// most is how many tokens can be in the cache at the end: the last token that is generated is never computed.
func (s *Sequence) most() int { return len(s.Tokens) + s.MaxTokens - 1 }

// append takes a sampled token and tells whether it ends the sequence.
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
