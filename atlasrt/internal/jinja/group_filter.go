package jinja

// This file holds the filters that compare, add up or group the elements of a sequence.

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

func batchFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("batch", 1, "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	size, err := integerArgument(values[0], 0)
	if err != nil {
		return nil, err
	}
	it, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	done := false
	var next Value
	return r.lazy(func() (Value, bool, error) {
		var batch []Value
		if next != nil {
			batch = append(batch, next)
			next = nil
		}
		for !done {
			item, more, err := it.next()
			if err != nil {
				return nil, false, err
			}
			if err := r.spend(1); err != nil {
				return nil, false, err
			}
			if !more {
				done = true
				break
			}
			if len(batch) == size {
				next = item
				return &List{batch}, true, nil
			}
			batch = append(batch, item)
		}
		if len(batch) == 0 {
			return nil, false, nil
		}
		if _, none := values[1].(None); values[1] != nil && !none {
			if err := r.spend(max(size-len(batch), 0)); err != nil {
				return nil, false, err
			}
			for len(batch) < size {
				batch = append(batch, values[1])
			}
		}
		return &List{batch}, true, nil
	}), nil
}

func sliceFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("slice", 1, "slices", "fill_with")
	if err != nil {
		return nil, err
	}
	count, err := integerArgument(values[0], 0)
	if err != nil {
		return nil, err
	}
	items, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, failf("integer division or modulo by zero")
	}
	number, start := 0, 0
	_, none := values[1].(None)
	return r.lazy(func() (Value, bool, error) {
		if number >= count {
			return nil, false, nil
		}
		size := len(items) / count
		extra := number < len(items)%count
		if extra {
			size++
		}
		part := append([]Value(nil), items[start:start+size]...)
		if values[1] != nil && !none && !extra {
			part = append(part, values[1])
		}
		start += size
		number++
		return &List{part}, true, r.spend(size + 1)
	}), nil
}

func groupByFilter(r *run, v Value, a args) (Value, error) {
	values, err := a.bind("groupby", 1, "attribute", "default", "case_sensitive")
	if err != nil {
		return nil, err
	}
	items, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	if _, none := values[1].(None); none {
		values[1] = nil
	}
	get := r.getter(values[0], values[1])
	key := func(item Value) (Value, error) {
		k, err := get(item)
		return r.folded(k, values[2] != nil && truth(values[2])), err
	}
	keys := make([]Value, len(items))
	for i, item := range items {
		if keys[i], err = key(item); err != nil {
			return nil, err
		}
	}
	if items, err = r.sortBy(items, keys, false); err != nil {
		return nil, err
	}
	groups := &List{}
	var last Value
	for _, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		same := false
		if last != nil {
			if same, err = r.equal(last, k, r.maxDepth); err != nil {
				return nil, err
			}
		}
		last = k
		if same {
			members := groups.items[len(groups.items)-1].(*Tuple).items[1].(*List)
			members.items = append(members.items, item)
			continue
		}
		label, err := get(item)
		if err != nil {
			return nil, err
		}
		groups.items = append(groups.items, &Tuple{items: []Value{label, NewList(item)}, group: true})
	}
	return groups, nil
}
