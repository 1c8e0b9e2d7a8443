package optest

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"reflect"

	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/generated/ops"
)

// Case is one call of an operation. Its buffers and their contents follow from its sizes, its name and a seed.
type Case struct {
	Op   string // the operation
	Name string // unlike those of the operation's other cases

	args    reflect.Value        // the op's struct: sizes and switches are set, addresses are not
	given   map[string]bool      // optional fields that are not zero, by name; a weight's scale is "W.Scale"
	values  map[string][]byte    // bytes of buffers that are not random, by name
	numbers map[string][]float64 // numbers of such buffers, to be rounded to their type; under a weight's name a matrix in bf16
	alias   map[string]string    // fields that have the address of another field
	ids     []int32              // of experts: the expert of each pick
	peaked  bool                 // see peak
}

// of makes a case of the op whose struct args is.
func of[T ops.Struct](name string, args T) *Case {
	v := reflect.New(reflect.TypeFor[T]()).Elem()
	v.Set(reflect.ValueOf(args))
	return &Case{
		Op: v.Type().Name(), Name: name, args: v,
		given: map[string]bool{}, values: map[string][]byte{}, numbers: map[string][]float64{}, alias: map[string]string{},
	}
}

// with gives optional fields; empty names are skipped.
func (c *Case) with(names ...string) *Case {
	for _, name := range names {
		if name != "" {
			c.given[name] = true
		}
	}
	return c
}

// number is what buffers are made of.
type number interface {
	int32 | int64 | uint32 | float32
}

// set gives the contents of a buffer.
func set[T number](c *Case, name string, values []T) {
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	c.values[name] = data
}

// get reads the contents of a buffer.
func get[T number](data []byte) []T {
	var zero T
	values := make([]T, len(data)/binary.Size(zero))
	if _, err := binary.Decode(data, binary.LittleEndian, values); err != nil {
		panic("BUG: " + err.Error())
	}
	return values
}

// clone copies a case so that its sizes and contents can be changed.
func (c *Case) clone() *Case {
	d := *c
	d.args = reflect.New(c.args.Type()).Elem()
	d.args.Set(c.args)
	d.values = maps.Clone(c.values)
	return &d
}

// weight is the case's weight W; false where its operation has none.
func (c *Case) weight() (op.Weight, bool) {
	v := c.args.FieldByName("W")
	if !v.IsValid() {
		return op.Weight{}, false
	}
	w, ok := v.Interface().(op.Weight)
	return w, ok
}

// random is the generator of the case: the same for the same seed, whichever other cases run.
func (c *Case) random(seed uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(c.Op + " " + c.Name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// matrices names the case's weights, in the order of its struct.
func (c *Case) matrices() []string {
	var names []string
	for i := range c.args.NumField() {
		if c.args.Field(i).Type() == reflect.TypeFor[op.Weight]() {
			names = append(names, c.args.Type().Field(i).Name)
		}
	}
	return names
}

// matrix is the weight of that name.
func (c *Case) matrix(name string) op.Weight { return c.args.FieldByName(name).Interface().(op.Weight) }

// matrix is a weight to be filled.
func matrix(scheme op.Scheme, rows, cols int) op.Weight { return experts(scheme, 1, rows, cols) }

// experts is a stack of matrices. They allow activations to be rounded where published checkpoints of the scheme do.
func experts(scheme op.Scheme, count, rows, cols int) op.Weight {
	w := op.Weight{Scheme: scheme, Rows: int32(rows), Cols: int32(cols), Count: int32(count)}
	switch scheme {
	case op.SchemeF8Block:
		w.Rounding = op.RoundingE4M3x128
	case op.SchemeF8:
		w.Rounding = op.RoundingE4M3xRow
	}
	return w
}

// keeping adds, to each case whose matrix allows activations to be rounded, the same case with a matrix that does not.
func keeping(list []*Case) []*Case {
	for _, c := range list {
		w, ok := c.weight()
		if !ok || w.Rounding == op.RoundingNone {
			continue
		}
		kept := c.clone()
		kept.Name += ", activations kept"
		w.Rounding = op.RoundingNone
		kept.args.FieldByName("W").Set(reflect.ValueOf(w))
		list = append(list, kept)
	}
	return list
}
