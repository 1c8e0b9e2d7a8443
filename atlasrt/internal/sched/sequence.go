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
	Waits     bool    // no step is planned behind one that samples for it: its logits are read first
	Salt      string  // prefixes are shared with sequences of the same salt
	Tag       int     // the caller's own

	prompt int
	cached int
	finish Finish
	err    error
	blocks *cache.Sequence // nil until it first runs

	// Of steps in flight:
	ahead   int  // tokens that they compute
	pending bool // the token behind the last one is being sampled
	sample  int  // which sample of the newest step it is
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

// length is how many tokens there are, one that is being sampled included.
func (s *Sequence) length() int {
	if s.pending {
		return len(s.Tokens) + 1
	}
	return len(s.Tokens)
}

// computed is how many tokens are computed, or are being.
func (s *Sequence) computed() int { return s.blocks.Committed() + s.ahead }

// remaining is how many tokens no step computes yet.
func (s *Sequence) remaining() int { return s.length() - s.computed() }

// full tells whether the token that is being sampled is the last one, whatever it will be.
func (s *Sequence) full() bool { return s.length()-s.prompt >= s.MaxTokens }

// leave books a chunk that is on its way, and which sample of its step its token is, if it has one.
func (s *Sequence) leave(c Chunk, sample int) {
	s.ahead += c.Rows
	s.pending, s.sample = c.Sample, sample
}

// land books a chunk that has come back. A token that it sampled is still pending where a later chunk left behind it.
func (s *Sequence) land(c Chunk) {
	s.ahead -= c.Rows
	s.pending = s.pending && s.ahead > 0
}

// scoring tells whether the logits of the prompt are still wanted.
func (s *Sequence) scoring() bool { return s.Score && s.length() == s.prompt }

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
