package jinja

func (e *constant) eval(*run) (Value, error) { return e.value, nil }

func (e *name) eval(r *run) (Value, error) {
	if err := r.spend(1); err != nil {
		return nil, err
	}
	if v := r.get(e.place); v != nil {
		return v, nil
	}
	return undefinedName(e.id), nil
}

func (*attributeRef) eval(*run) (Value, error) {
	panic("BUG: the parser let a namespace target be read")
}

func evalAll(r *run, items []expr) ([]Value, error) {
	if err := r.spend(1 + len(items)); err != nil {
		return nil, err
	}
	values := make([]Value, len(items))
	for i, e := range items {
		v, err := e.eval(r)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func (e *tupleExpr) eval(r *run) (Value, error) {
	items, err := evalAll(r, e.items)
	return &Tuple{items: items}, err
}

func (e *listExpr) eval(r *run) (Value, error) {
	items, err := evalAll(r, e.items)
	return &List{items}, err
}

func (e *dictExpr) eval(r *run) (Value, error) {
	d := &Dict{entries: make([]entry, 0, len(e.keys))}
	for i := range e.keys {
		key, err := e.keys[i].eval(r)
		if err != nil {
			return nil, err
		}
		value, err := e.values[i].eval(r)
		if err != nil {
			return nil, err
		}
		r.chargeText(key)
		if err := d.put(key, value); err != nil {
			return nil, err
		}
	}
	return d, r.spend(len(e.keys))
}

func (e *attribute) eval(r *run) (Value, error) {
	object, err := e.object.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	return r.attribute(object, e.id)
}

func (e *subscript) eval(r *run) (Value, error) {
	object, err := e.object.eval(r)
	if err != nil {
		return nil, err
	}
	key, err := e.key.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	return r.item(object, key)
}

func (e *slicing) eval(r *run) (Value, error) {
	object, err := e.object.eval(r)
	if err != nil {
		return nil, err
	}
	var bounds [3]Value
	for i, b := range []expr{e.start, e.stop, e.step} {
		if b == nil {
			continue
		}
		if bounds[i], err = b.eval(r); err != nil {
			return nil, err
		}
	}
	return r.sliceOf(object, bounds)
}

func (e *unary) eval(r *run) (Value, error) {
	v, err := e.operand.eval(r)
	if err != nil {
		return nil, err
	}
	return r.unary(e.operator, v)
}

func (e *operation) eval(r *run) (Value, error) {
	left, err := e.left.eval(r)
	if err != nil {
		return nil, err
	}
	right, err := e.right.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	return r.binary(e.operator, left, right)
}

func (e *concat) eval(r *run) (Value, error) {
	b := textBuilder{run: r}
	values, err := evalAll(r, e.parts)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		s, err := r.str(v)
		if err != nil {
			return nil, err
		}
		b.add(s)
	}
	return b.str(), r.over
}

func (e *compare) eval(r *run) (Value, error) {
	left, err := e.first.eval(r)
	if err != nil {
		return nil, err
	}
	for i, operator := range e.operators {
		right, err := e.rest[i].eval(r)
		if err != nil {
			return nil, err
		}
		if err := r.spend(1); err != nil {
			return nil, err
		}
		holds, err := r.compare(operator, left, right)
		if err != nil || !holds {
			return Bool(false), err
		}
		left = right
	}
	return Bool(true), nil
}

func (e *logical) eval(r *run) (Value, error) {
	left, err := e.left.eval(r)
	if err != nil || truth(left) == e.or {
		return left, err
	}
	return e.right.eval(r)
}

func (e *negation) eval(r *run) (Value, error) {
	v, err := e.operand.eval(r)
	if err != nil {
		return nil, err
	}
	return Bool(!truth(v)), nil
}

func (e *conditional) eval(r *run) (Value, error) {
	test, err := e.test.eval(r)
	if err != nil {
		return nil, err
	}
	if truth(test) {
		return e.yes.eval(r)
	}
	if e.no == nil {
		return &undefined{hint: noElse(e.line)}, nil
	}
	return e.no.eval(r)
}

func (e *call) eval(r *run) (Value, error) {
	f, err := e.function.eval(r)
	if err != nil {
		return nil, err
	}
	a, err := e.arguments.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	return r.call(f, a)
}

func (e *filterExpr) eval(r *run) (Value, error) {
	v, err := e.operand.eval(r)
	if err != nil {
		return nil, err
	}
	return e.applyOne(r, v)
}

// apply runs a chain of filters that starts at the text of a block.
func (e *filterExpr) apply(r *run, v Value) (Value, error) {
	if before, ok := e.operand.(*filterExpr); ok {
		var err error
		if v, err = before.apply(r, v); err != nil {
			return nil, err
		}
	}
	return e.applyOne(r, v)
}

func (e *filterExpr) applyOne(r *run, v Value) (Value, error) {
	a, err := e.arguments.eval(r)
	if err != nil {
		return nil, err
	}
	r.chargeText(v)
	if e.filter == nil {
		return nil, failf("No filter named %s found.", quote(e.id))
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	return e.filter(r, v, a)
}

func (e *testExpr) eval(r *run) (Value, error) {
	v, err := e.operand.eval(r)
	if err != nil {
		return nil, err
	}
	a, err := e.arguments.eval(r)
	if err != nil {
		return nil, err
	}
	r.chargeText(v)
	if e.test == nil {
		return nil, failf("No test named %s found.", quote(e.id))
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	return e.test(r, v, a)
}
