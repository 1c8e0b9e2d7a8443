package sched

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/cache"
)

// Finish is how a sequence ended.
type Finish int

// A sequence is Unfinished until it sampled an end token, reached its limit, was cancelled, or its step failed.
const (
	Unfinished Finish = iota
	Stop
	Length
	Cancelled
	Failed
)

// Sequence is one request as the scheduler sees it.
type Sequence struct {
	Tokens    []int32 // the prompt, and behind it what was generated
	MaxTokens int     // to generate, at least 1
	End       []int32 // tokens that end it
	Score     bool    // logits are wanted at every token of the prompt
	Salt      string  // prefixes are shared with sequences of the same salt
	Tag       int     // the caller's own

	prompt int
	cached int
	finish Finish
	err    error
	blocks *cache.Sequence // nil until it first runs
}

// Prompt is how many of Tokens were the prompt.
func (s *Sequence) Prompt() int { return s.prompt }

// Generated are the tokens behind the prompt.
func (s *Sequence) Generated() []int32 { return s.Tokens[s.prompt:] }

// Cached is how many tokens of the prompt were found in the cache when the sequence first ran.
func (s *Sequence) Cached() int { return s.cached }

// Finish is how the sequence ended, and the error if it failed.
func (s *Sequence) Finish() (Finish, error) { return s.finish, s.err }

// Blocks is the block table that covers every token computed so far and in the current plan.
func (s *Sequence) Blocks() []int32 { return s.blocks.Blocks() }

// remaining is how many tokens are not computed.
func (s *Sequence) remaining() int { return len(s.Tokens) - s.blocks.Committed() }

// scoring tells whether the logits of the prompt are still wanted.
func (s *Sequence) scoring() bool { return s.Score && len(s.Tokens) == s.prompt }

// most is how many tokens are ever in the cache at once: the last one generated is not computed.
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
