package jinja

// This file holds the filters that compare or add up the elements of a sequence.

func uniqueFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("unique", 0, "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	get := r.getter(values[1], nil)
	seen := map[string]bool{}
	it := iterator(nil)
	return r.lazy(func() (Value, bool, error) {
		if it == nil {
			var err error
			if it, err = r.iterate(v); err != nil {
				return nil, false, err
			}
		}
		for {
			item, more, err := it.next()
			if !more || err != nil {
				return nil, false, err
			}
			key, err := get(item)
			if err != nil {
				return nil, false, err
			}
			r.chargeText(key)
			if err := r.spend(1); err != nil {
				return nil, false, err
			}
			hash, err := hashKey(r.folded(key, values[0] != nil && truth(values[0])))
			if err != nil {
				return nil, false, err
			}
			if !seen[hash] {
				seen[hash] = true
				return item, true, nil
			}
		}
	}), nil
}

func extremeFilter(r *run, id string, v Value, a args) (Value, error) {
	values, err := a.bind(id, 0, "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	items, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return &undefined{hint: "No aggregated item, sequence was empty."}, nil
	}
	operator := "<"
	if id == "max" {
		operator = ">"
	}
	get := r.getter(values[1], nil)
	var best, bestKey Value
	for _, item := range items {
		key, err := get(item)
		if err != nil {
			return nil, err
		}
		key = r.folded(key, values[0] != nil && truth(values[0]))
		better := best == nil
		if !better {
			if better, err = r.ordered(operator, key, bestKey, r.maxDepth); err != nil {
				return nil, err
			}
		}
		if better {
			best, bestKey = item, key
		}
	}
	return best, nil
}

func sumFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("sum", 0, "attribute", "start")
	if err != nil {
		return nil, err
	}
	total := values[1]
	if total == nil {
		total = Int(0)
	}
	if _, ok := total.(Str); ok {
		return nil, failf("sum() can't sum strings [use ''.join(seq) instead]")
	}
	items, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	get := r.getter(values[0], nil)
	for _, item := range items {
		item, err := get(item)
		if err != nil {
			return nil, err
		}
		if total, err = r.binary("+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}
