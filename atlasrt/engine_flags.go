package main

import "github.com/atlas-inference/atlas/atlasrt/internal/engine"

// engineFlags say how steps are queued on the device. None of them changes a token.
type engineFlags struct {
	OptimizationLevel int    `short:"O" help:"0: each step waits for the one before and is launched kernel by kernel. 1: the next step is queued while one runs, where the device works beside the host. 2: decode steps are also recorded when they first come, and replayed. 3: they are recorded before the first request." enum:"0,1,2,3" default:"2"`
	GraphMode         string `help:"Steps that are recorded and replayed: full_decode_only, those that only decode; full, all whose sizes repeat; piecewise, all, but for their attentions; full_and_piecewise, decode steps whole and others in pieces; none. auto follows the optimization level." enum:"auto,none,full,full_decode_only,piecewise,full_and_piecewise" default:"auto"`
	GraphCaptureSizes []int  `help:"Sequences that recorded decode steps are rounded up to, such as 1,2,4,8; larger steps are not recorded. Empty: up to --max-sequences, at most a quarter apart."`
}

// set fills in what the flags say.
func (f engineFlags) set(o engine.Options) engine.Options {
	o.NoOverlap = f.OptimizationLevel == 0
	o.CaptureAtStart = f.OptimizationLevel == 3
	o.GraphSizes = f.GraphCaptureSizes
	switch {
	case f.GraphMode != "auto":
		o.Graphs = engine.GraphMode(f.GraphMode)
	case f.OptimizationLevel < 2:
		o.Graphs = engine.GraphsNone
	default:
		o.Graphs = engine.GraphsFullDecodeOnly
	}
	return o
}
