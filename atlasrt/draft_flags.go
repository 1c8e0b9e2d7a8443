package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
)

// noDrafts is the drafts of commands that run the model alone.
const noDrafts = 0

// mostDrafts is how many drafts are made where measurements decide: a head that drafts one token after another is seldom right further ahead.
const mostDrafts = 3

// draftFlags say how a model that has a drafting head guesses tokens ahead. None of them changes a token.
type draftFlags struct {
	Speculative bool `help:"Guess tokens ahead with the drafting head that some checkpoints have (MTP), and compute the guesses together: answers stay what they are and come faster."`
	NumDrafts   int  `help:"Tokens that are guessed ahead with --speculative: 1, 2 or 3; 0: as many of these, or none, as pay off by what is measured meanwhile." enum:"0,1,2,3" default:"0"`
}

// drafts is how many there are of a sequence in a step at most.
func (f draftFlags) drafts() (int, error) {
	switch {
	case f.Speculative && f.NumDrafts == 0:
		return mostDrafts, nil
	case f.Speculative:
		return f.NumDrafts, nil
	case f.NumDrafts > 0:
		return 0, errors.New("--num-drafts says how many tokens --speculative guesses (add --speculative, or leave --num-drafts out)")
	}
	return noDrafts, nil
}

// speculativeFlags load a model for an engine, which may draft.
type speculativeFlags struct {
	loadFlags
	draftFlags
}

// prepare opens target and checkpoint and measures the model.
func (f speculativeFlags) prepare(ctx context.Context) (*instance.Prepared, error) {
	drafts, err := f.drafts()
	if err != nil {
		return nil, err
	}
	return f.loadFlags.prepare(ctx, drafts)
}

// prepareOn is prepare for a target that is open.
func (f speculativeFlags) prepareOn(ctx context.Context, target *instance.Target) (*instance.Prepared, error) {
	drafts, err := f.drafts()
	if err != nil {
		return nil, err
	}
	return f.loadFlags.prepareOn(ctx, target, drafts)
}

// load prepares and loads, and says on standard error what a user should know.
func (f speculativeFlags) load(ctx context.Context, log *slog.Logger) (*instance.Loaded, error) {
	drafts, err := f.drafts()
	if err != nil {
		return nil, err
	}
	return f.loadFlags.load(ctx, log, drafts)
}

// set fills in what the flags say of an engine.
func (f draftFlags) set(o instance.EngineOptions) instance.EngineOptions {
	o.FixedDrafts = f.NumDrafts > 0
	return o
}
