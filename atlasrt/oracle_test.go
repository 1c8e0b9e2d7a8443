package main

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/device"
	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// onOracle is a target that computes in plain Go.
func onOracle(act op.DType) *instance.Target {
	return &instance.Target{
		Device: host.New(0), Set: patient{oracle.New(act)}, Bundle: &bundle.Bundle{Hardware: "oracle-" + act.String(), Activations: act},
	}
}

// madeUp is a checkpoint of made-up weights for a config.json's text.
func madeUp(t *testing.T, target *instance.Target, config string, stored dummy.Options) weights.Checkpoint {
	t.Helper()
	parsed, err := weights.ParseConfig("config.json", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	c, err := instance.Dummy(target, parsed, stored)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// patient is the oracle but for steps that are only measured: those have no memory to compute in.
type patient struct{ *oracle.Set }

func run[T any](q op.Stream, x T, compute func(op.Stream, T)) {
	if _, ok := q.(device.Stream); ok {
		compute(q, x)
	}
}

func (p patient) Embedding(q op.Stream, x op.Embedding)           { run(q, x, p.Set.Embedding) }
func (p patient) RMSNorm(q op.Stream, x op.RMSNorm)               { run(q, x, p.Set.RMSNorm) }
func (p patient) Linear(q op.Stream, x op.Linear)                 { run(q, x, p.Set.Linear) }
func (p patient) SwiGLU(q op.Stream, x op.SwiGLU)                 { run(q, x, p.Set.SwiGLU) }
func (p patient) Logits(q op.Stream, x op.Logits)                 { run(q, x, p.Set.Logits) }
func (p patient) RotaryAngles(q op.Stream, x op.RotaryAngles)     { run(q, x, p.Set.RotaryAngles) }
func (p patient) RotaryCache(q op.Stream, x op.RotaryCache)       { run(q, x, p.Set.RotaryCache) }
func (p patient) PagedAttention(q op.Stream, x op.PagedAttention) { run(q, x, p.Set.PagedAttention) }
func (p patient) SigmoidGate(q op.Stream, x op.SigmoidGate)       { run(q, x, p.Set.SigmoidGate) }
func (p patient) CausalConv(q op.Stream, x op.CausalConv)         { run(q, x, p.Set.CausalConv) }
func (p patient) DeltaRule(q op.Stream, x op.DeltaRule)           { run(q, x, p.Set.DeltaRule) }
func (p patient) GatedNorm(q op.Stream, x op.GatedNorm)           { run(q, x, p.Set.GatedNorm) }
func (p patient) GatedAdd(q op.Stream, x op.GatedAdd)             { run(q, x, p.Set.GatedAdd) }
func (p patient) Route(q op.Stream, x op.Route)                   { run(q, x, p.Set.Route) }
func (p patient) ExpertUp(q op.Stream, x op.ExpertUp)             { run(q, x, p.Set.ExpertUp) }
func (p patient) ExpertDown(q op.Stream, x op.ExpertDown)         { run(q, x, p.Set.ExpertDown) }
func (p patient) Accept(q op.Stream, x op.Accept)                 { run(q, x, p.Set.Accept) }
func (p patient) DraftRows(q op.Stream, x op.DraftRows)           { run(q, x, p.Set.DraftRows) }
func (p patient) NormPair(q op.Stream, x op.NormPair)             { run(q, x, p.Set.NormPair) }
func (p patient) Lookup(q op.Stream, x op.Lookup)                 { run(q, x, p.Set.Lookup) }
func (p patient) Sample(q op.Stream, x op.Sample)                 { run(q, x, p.Set.Sample) }

// Fused operations are served, so that models are tried with them, too.

func (p patient) NormLinear(q op.Stream, x op.NormLinear) bool { return serve(q, x, p.Set.NormLinear) }
func (p patient) GatedLinear(q op.Stream, x op.GatedLinear) bool {
	return serve(q, x, p.Set.GatedLinear)
}
func (p patient) NormRoute(q op.Stream, x op.NormRoute) bool { return serve(q, x, p.Set.NormRoute) }
func (p patient) NormRouteUp(q op.Stream, x op.NormRouteUp) bool {
	return serve(q, x, p.Set.NormRouteUp)
}

func (p patient) LinearAdd(q op.Stream, x op.LinearAdd) bool { return serve(q, x, p.Set.LinearAdd) }
func (p patient) ExpertDownAdd(q op.Stream, x op.ExpertDownAdd) bool {
	return serve(q, x, p.Set.ExpertDownAdd)
}
func (p patient) ExpertDownNorm(q op.Stream, x op.ExpertDownNorm) bool {
	return serve(q, x, p.Set.ExpertDownNorm)
}

func (p patient) DeltaNet(q op.Stream, x op.DeltaNet) bool { return serve(q, x, p.Set.DeltaNet) }

func serve[T any](q op.Stream, x T, compute func(op.Stream, T) bool) bool {
	run(q, x, func(q op.Stream, x T) { compute(q, x) })
	return true
}
