package optest

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// ops are all operations, in the order of package op's files.
var ops = [...]string{
	"Pack", "Unpack", "Copy", "Fill", "Convert",
	"Embedding", "RMSNorm", "Linear", "SwiGLU", "Logits",
	"RotaryAngles", "RotaryCache", "PagedAttention",
	"Route", "ExpertUp", "ExpertDown", "Sample", "Resolve",
	"NormLinear", "GatedLinear", "NormRoute", "NormRouteUp", "LinearAdd", "ExpertDownAdd", "ExpertDownNorm",
}

// invoke calls the method that belongs to a struct, and reports whether the set served the call. A switch and not reflection by name, which would keep every method
// of the program alive.
func invoke(set bundle.Set, q op.Stream, args any) bool {
	switch x := args.(type) {
	case op.Pack:
		set.Pack(q, x)
	case op.Unpack:
		set.Unpack(q, x)
	case op.Copy:
		set.Copy(q, x)
	case op.Fill:
		set.Fill(q, x)
	case op.Convert:
		set.Convert(q, x)
	case op.Embedding:
		set.Embedding(q, x)
	case op.RMSNorm:
		set.RMSNorm(q, x)
	case op.Linear:
		set.Linear(q, x)
	case op.SwiGLU:
		set.SwiGLU(q, x)
	case op.Logits:
		set.Logits(q, x)
	case op.RotaryAngles:
		set.RotaryAngles(q, x)
	case op.RotaryCache:
		set.RotaryCache(q, x)
	case op.PagedAttention:
		set.PagedAttention(q, x)
	case op.Route:
		set.Route(q, x)
	case op.ExpertUp:
		set.ExpertUp(q, x)
	case op.ExpertDown:
		set.ExpertDown(q, x)
	case op.Sample:
		set.Sample(q, x)
	case op.Resolve:
		set.Resolve(q, x)
	case op.NormLinear:
		return set.NormLinear(q, x)
	case op.GatedLinear:
		return set.GatedLinear(q, x)
	case op.NormRoute:
		return set.NormRoute(q, x)
	case op.NormRouteUp:
		return set.NormRouteUp(q, x)
	case op.LinearAdd:
		return set.LinearAdd(q, x)
	case op.ExpertDownAdd:
		return set.ExpertDownAdd(q, x)
	case op.ExpertDownNorm:
		return set.ExpertDownNorm(q, x)
	default:
		panic(fmt.Sprintf("BUG: %T is no op", args))
	}
	return true
}
