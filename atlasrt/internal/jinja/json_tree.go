package jinja

import (
	"fmt"
	"strconv"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// FromJSON makes the value of a template from JSON: 1 is an Int and 1.0 a Float, every string is data. It refuses numbers
// that no float, or no integer that Python prints, can hold.
func FromJSON(v jsontree.Value) (Value, error) {
	switch v := v.(type) {
	case jsontree.Null:
		return None{}, nil
	case jsontree.Bool:
		return Bool(v), nil
	case jsontree.String:
		return Data(string(v)), nil
	case jsontree.Number:
		return numberFromJSON(v)
	case jsontree.Array:
		l := &List{items: make([]Value, len(v))}
		for i, item := range v {
			var err error
			if l.items[i], err = FromJSON(item); err != nil {
				return nil, err
			}
		}
		return l, nil
	case *jsontree.Object:
		d := NewDict()
		for key, item := range v.All() {
			value, err := FromJSON(item)
			if err != nil {
				return nil, err
			}
			d.Set(Data(key), value)
		}
		return d, nil
	}
	panic(fmt.Sprintf("BUG: %T is no JSON value", v))
}

func numberFromJSON(n jsontree.Number) (Value, error) {
	if !n.IsInteger() {
		f, ok := n.Float()
		if !ok {
			return nil, fmt.Errorf("the number %.40s is out of range", string(n))
		}
		return Float(f), nil
	}
	if small, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return Int(small), nil
	}
	if len(n) <= maxIntegerDigits {
		if v, ok := parseInteger(string(n), 10); ok {
			return v, nil
		}
	}
	return nil, fmt.Errorf("the integer %.40s… is out of range", string(n))
}
