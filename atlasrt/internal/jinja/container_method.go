package jinja

// sequenceMethod is a method of a list or tuple, nil where there is none of this name.
func sequenceMethod(object Value, id string) func(r *run, a args) (Value, error) {
	items, _ := sequence(object)
	_, isList := object.(*List)
	switch {
	case id == "count":
		return func(r *run, a args) (Value, error) {
			values, err := a.bind(id, 1, "value")
			if err != nil {
				return nil, err
			}
			n := 0
			for _, item := range items {
				same, err := r.equal(item, values[0], r.maxDepth)
				if err != nil {
					return nil, err
				}
				if same {
					n++
				}
			}
			return Int(n), r.spend(len(items))
		}
	case id == "index":
		return func(r *run, a args) (Value, error) {
			values, err := a.bind(id, 1, "value", "start", "stop")
			if err != nil {
				return nil, err
			}
			start, _, _, count, err := sliceBounds([3]Value{values[1], values[2], nil}, len(items))
			if err != nil {
				return nil, err
			}
			if err := r.spend(count); err != nil {
				return nil, err
			}
			for i := start; i < start+count; i++ {
				same, err := r.equal(items[i], values[0], r.maxDepth)
				if same || err != nil {
					return Int(i), err
				}
			}
			return nil, failf("%s is not in %s", shortRepr(values[0]), object.typeName())
		}
	case id == "copy" && isList:
		return func(r *run, a args) (Value, error) {
			_, err := a.bind(id, 0)
			return &List{items}, err
		}
	}
	return nil
}

// dictMethod is a method of a dictionary, nil where there is none of this name.
func dictMethod(id string) func(r *run, d *Dict, a args) (Value, error) {
	switch id {
	case "get":
		return func(r *run, d *Dict, a args) (Value, error) {
			if len(a.named) > 0 {
				return nil, failf("dict.get() takes no keyword arguments")
			}
			values, err := a.bind("get", 1, "key", "default")
			if err != nil {
				return nil, err
			}
			r.chargeText(values[0])
			v, ok, err := d.lookup(values[0])
			if err != nil || ok {
				return v, err
			}
			if values[1] != nil {
				return values[1], nil
			}
			return None{}, nil
		}
	case "items", "keys", "values":
		return func(_ *run, d *Dict, a args) (Value, error) {
			_, err := a.bind(id, 0)
			return &dictView{d, "dict_" + id}, err
		}
	case "copy":
		return func(r *run, d *Dict, a args) (Value, error) {
			_, err := a.bind(id, 0)
			if err == nil {
				err = r.spend(d.Len())
			}
			return d.copy(), err
		}
	}
	return nil
}
