// Package calls lists what a step of a model calls: which operations of what sizes, what serves each, and what it has to move.
//
// The step is queued on a set whose kernels no device has loaded, so it works for any hardware on any machine. It is the same Forward that
// the server runs: there is no second description of a model.
package calls

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/bundle"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Call is all calls of a step that are alike: they have the same sizes, launch the same, and take the same part in different layers.
type Call struct {
	optest.Shape          // its operation, the integers of its struct, and how many there are in a step
	What         string   // the tensors that it reads, without the names of layers; "" where it reads none
	Scheme       string   // of its weight; "" where it has none
	Sizes        string   // what its time depends on, for people
	Bytes        int64    // that one call must move at least
	Flops        int64    // of one call's products; 0 where they do not matter
	Launches     []Launch // what one call queues
}

// Launch is one launch of a call.
type Launch struct {
	Kernel string    // entry point
	Grid   [3]uint32 // blocks in x, y and z
}

// List notes the calls of a step.
type List struct {
	Set     bundle.Set              // the kernels that are asked
	Act     op.DType                // of the set
	Kernels []bundle.Kernel         // those of the set are numbered from 1: see bundle.Bundle.Unloaded
	Tensors func(p op.Ptr) []string // the tensors that lie at an address; nil where none do
	Context int                     // tokens of each sequence

	Calls []Call // in the order of the first of each
}

// Call queues the operation whose struct args is and notes it, if the set serves it: it may stand for the methods of a set (ops.Tap).
func (l *List) Call(q op.Stream, args any) bool {
	var s Stream
	served := ops.Call(l.Set, &s, args)
	if s.Err != nil {
		q.Fail(fmt.Errorf("%s: %w", reflect.TypeOf(args).Name(), s.Err))
	}
	if !served || s.Err != nil {
		return served
	}
	call, err := l.describe(args, s.Launches)
	if err != nil {
		q.Fail(err)
		return true
	}
	i := slices.IndexFunc(l.Calls, func(known Call) bool { return reflect.DeepEqual(known.named(), call.named()) })
	if i < 0 {
		i, l.Calls = len(l.Calls), append(l.Calls, call)
	}
	l.Calls[i].Count++
	return true
}

// named is the call without its count.
func (c Call) named() Call {
	c.Count = 0
	return c
}

// describe says what there is to say of a call.
func (l *List) describe(args any, launches []Launched) (Call, error) {
	c := Call{Shape: optest.ShapeOf(args), What: l.what(args), Sizes: optest.Sizes(args)}
	if w, ok := weight(args); ok {
		c.Scheme = w.Scheme.String()
	}
	for _, launched := range launches {
		g := launched.Grid
		c.Launches = append(c.Launches, Launch{l.Kernels[launched.Kernel-1].Name, [3]uint32{g.X, g.Y, g.Z}})
	}
	var err error
	c.Bytes, c.Flops, err = optest.Work(l.Set, l.Act, args, l.Context)
	return c, err
}

// what names the tensors of a call's first weight, else those of the first other pointer that leads to some.
func (l *List) what(args any) string {
	if w, ok := weight(args); ok {
		return short(l.Tensors(w.Data))
	}
	v := reflect.ValueOf(args)
	for i := range v.NumField() {
		if v.Field(i).Type() == reflect.TypeFor[op.Ptr]() {
			if names := l.Tensors(op.Ptr(v.Field(i).Uint())); len(names) > 0 {
				return short(names)
			}
		}
	}
	return ""
}

// weight is the first weight of a call.
func weight(args any) (op.Weight, bool) {
	f := reflect.ValueOf(args).FieldByName("W")
	if !f.IsValid() {
		return op.Weight{}, false
	}
	w, ok := f.Interface().(op.Weight)
	return w, ok
}

// short is a list of tensors in a few words, the same for each layer and expert: model.layers.7.self_attn.q_proj.weight and those of k_proj
// and v_proj are q+k+v_proj.
func short(names []string) string {
	var out []string
	for _, name := range names {
		var parts []string
		for part := range strings.SplitSeq(strings.TrimSuffix(name, ".weight"), ".") {
			if !slices.Contains(frames, part) && strings.Trim(part, "0123456789") != "" {
				parts = append(parts, part)
			}
		}
		name := strings.Join(parts, ".")
		if n := len(out); n > 0 {
			if cut := strings.LastIndexByte(name, '.') + 1; strings.HasPrefix(out[0], name[:cut]) {
				name = name[cut:]
			}
			if strings.HasSuffix(name, proj) {
				out[n-1] = strings.TrimSuffix(out[n-1], proj)
			}
		}
		out = append(out, name)
	}
	return strings.Join(out, "+")
}

// frames are parts of names that tell no tensor of a layer from another.
var frames = []string{"model", "layers", "self_attn", "mlp"}

// proj ends the names of a layer's matrices.
const proj = "_proj"
