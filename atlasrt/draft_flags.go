package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// drafting is how many drafts of a sequence a step may have, and how the head is kept that makes them: see instance.Sizes.
type drafting struct {
	most, vocab int
	scheme      op.Scheme
}

// noDrafts is that of commands that run the model alone.
var noDrafts drafting

// set fills in what an instance is asked for.
func (d drafting) set(s instance.Sizes) instance.Sizes {
	s.Drafts, s.DraftVocab, s.DraftScheme = d.most, d.vocab, d.scheme
	return s
}

// headFlags say how a drafting head is kept.
type headFlags struct {
	MTPVocab        int    `name:"mtp-vocab" help:"Guess tokens with ids below this number, and control tokens, alone: the output matrix is smaller; 0: all."`
	MTPQuantization string `name:"mtp-quantization" help:"How matrices of the drafting head, and its copy of the output matrix, are kept: ${enum}." enum:"stored,fp8,nvfp4" default:"stored"`
}

// drafting is what the flags say of so many drafts.
func (f headFlags) drafting(most int) drafting {
	return drafting{most, f.MTPVocab, map[string]op.Scheme{"fp8": op.SchemeF8, "nvfp4": op.SchemeNVFP4}[f.MTPQuantization]}
}

// given tells whether any flag is.
func (f headFlags) given() bool {
	return f.MTPVocab != 0 || f.MTPQuantization != "" && f.MTPQuantization != "stored"
}

// mostDrafts is how many drafts are made where measurements decide: a head that drafts one token after another is seldom right further ahead.
const mostDrafts = 3

// draftFlags say how a model that has a drafting head guesses tokens ahead. None of them changes a token.
type draftFlags struct {
	Speculative bool `help:"Guess tokens ahead with the drafting head that some checkpoints have (MTP), and compute the guesses together: answers stay what they are and come faster."`
	NumDrafts   int  `help:"Tokens that are guessed ahead with --speculative: 1, 2 or 3; 0: as many of these, or none, as pay off by what is measured meanwhile." enum:"0,1,2,3" default:"0"`
	headFlags
}

// drafting is what the flags say.
func (f draftFlags) drafting() (drafting, error) {
	switch {
	case f.Speculative && f.NumDrafts == 0:
		return f.headFlags.drafting(mostDrafts), nil
	case f.Speculative:
		return f.headFlags.drafting(f.NumDrafts), nil
	case f.NumDrafts > 0:
		return noDrafts, errors.New("--num-drafts says how many tokens --speculative guesses (add --speculative, or leave --num-drafts out)")
	case f.given():
		return noDrafts, errors.New("--mtp-vocab and --mtp-quantization are for what --speculative guesses with (add --speculative, or leave them out)")
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
	d, err := f.drafting()
	if err != nil {
		return nil, err
	}
	return f.loadFlags.prepare(ctx, d)
}

// prepareOn is prepare for a target that is open.
func (f speculativeFlags) prepareOn(ctx context.Context, target *instance.Target) (*instance.Prepared, error) {
	d, err := f.drafting()
	if err != nil {
		return nil, err
	}
	return f.loadFlags.prepareOn(ctx, target, d)
}

// load prepares and loads, and says on standard error what a user should know.
func (f speculativeFlags) load(ctx context.Context, log *slog.Logger) (*instance.Loaded, error) {
	d, err := f.drafting()
	if err != nil {
		return nil, err
	}
	return f.loadFlags.load(ctx, log, d)
}

// set fills in what the flags say of an engine.
func (f draftFlags) set(o engine.Options) engine.Options {
	o.FixedDrafts = f.NumDrafts > 0
	return o
}
