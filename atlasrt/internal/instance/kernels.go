package instance

import (
	"reflect"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/calls"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Kernels names the kernels that read each matrix when one sequence decodes, by the matrix' tensors. Of stacked matrices only the tensors of
// the first are there. A target without named kernels has none.
func (p *Prepared) Kernels() (map[string][]string, error) {
	names := map[op.Kernel]string{}
	for i, k := range p.Target.Kernels {
		names[k] = strings.TrimPrefix(p.Target.Bundle.Kernels[i].Name, "atlas_")
	}
	readers := map[string][]string{}
	p.tap.Each = func(q op.Stream, args any) bool {
		var s calls.Stream
		served := ops.Call(p.tap.Set, &s, args)
		if s.Err != nil {
			q.Fail(s.Err)
		}
		for _, tensor := range p.matrices(args) {
			for _, launched := range s.Launches {
				if name := names[launched.Kernel]; served && name != "" && !slices.Contains(readers[tensor], name) {
					readers[tensor] = append(readers[tensor], name)
				}
			}
		}
		return served
	}
	var stream calls.Stream
	in := p.inputs(1, 1, p.Sizes.MaxContext)
	p.counted.Forward(&stream, in)
	p.draft(&stream, in)
	return readers, stream.Err
}

// matrices names the tensors of a call's weights.
func (p *Prepared) matrices(args any) []string {
	var tensors []string
	v := reflect.ValueOf(args)
	for i := range v.NumField() {
		if f := v.Field(i); f.Type() == reflect.TypeFor[op.Weight]() {
			tensors = append(tensors, p.Counter.Tensors(f.Interface().(op.Weight).Data)...)
		}
	}
	return tensors
}
