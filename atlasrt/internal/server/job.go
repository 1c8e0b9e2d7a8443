package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/halfclose"
)

// job is the answers to one request: a stream for each of its prompts.
type job struct {
	ctx     context.Context
	cancel  context.CancelFunc
	choices int // to each prompt
	streams []*completion.Stream
	pieces  chan piece
	probes  <-chan struct{} // asks for an event without a meaning
}

// piece is a chunk of one stream.
type piece struct {
	prompt int
	completion.Chunk
}

// start begins to answer prompts, all or none. Whoever gets a job must end it with close.
func (s *Server) start(ctx context.Context, prompts [][]int32, o completion.Options) (*job, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.RequestTime, errDeadline)
	j := &job{ctx: ctx, cancel: cancel, choices: o.Choices, pieces: make(chan piece, o.Choices), probes: halfclose.Probes(ctx)}
	for _, prompt := range prompts {
		stream, err := s.config.Generator.Start(ctx, prompt, o)
		if err != nil {
			cancel()
			return nil, err
		}
		j.streams = append(j.streams, stream)
		o.Sampling.Seed += int64(o.Choices)
	}
	var running sync.WaitGroup
	for i, stream := range j.streams {
		running.Go(func() { j.forward(i, stream) })
	}
	go func() { // ends with the last stream
		running.Wait()
		close(j.pieces)
	}()
	return j, nil
}

// close cancels what still runs.
func (j *job) close() { j.cancel() }

func (j *job) forward(prompt int, stream *completion.Stream) {
	for chunk := range stream.Chunks() {
		select {
		case j.pieces <- piece{prompt, chunk}:
		case <-j.ctx.Done():
			return
		}
	}
}

// errCut says that the streams ended before their answers did.
var errCut = errors.New("the answers were cut short")

// follow hands on every piece until all answers have ended, and calls idle where none comes for a while, or where the client must
// be written to. An error of theirs ends it; else the error says why the answers cannot be completed.
func (j *job) follow(pause time.Duration, take func(piece) error, idle func() error) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for left := len(j.streams) * j.choices; left > 0; {
		var err error
		select {
		case p, ok := <-j.pieces:
			switch {
			case !ok:
				err = errCut
			case p.Err != nil:
				err = p.Err
			default:
				if p.Finish != "" {
					left--
				}
				if err := take(p); err != nil {
					return err
				}
			}
		case <-timer.C:
			if err := idle(); err != nil {
				return err
			}
		case <-j.probes:
			if err := idle(); err != nil {
				return err
			}
		case <-j.ctx.Done():
			err = j.ctx.Err()
		}
		if err != nil {
			if cause := context.Cause(j.ctx); cause != nil {
				return cause
			}
			return err
		}
		timer.Reset(pause)
	}
	return nil
}

// index is the number of a piece's answer among those to all prompts.
func (j *job) index(p piece) int { return p.prompt*j.choices + p.Choice }

// usage is the tokens so far.
func (j *job) usage() completion.Usage {
	var sum completion.Usage
	for _, stream := range j.streams {
		u := stream.Usage()
		sum.Prompt += u.Prompt
		sum.Completion += u.Completion
		sum.Cached += u.Cached
	}
	return sum
}
