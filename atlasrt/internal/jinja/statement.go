package jinja

func (st *textStmt) exec(r *run) (flow, error) {
	r.out.add(st.text)
	return flowNext, r.spend(1)
}

func (st *printStmt) exec(r *run) (flow, error) {
	v, err := st.value.eval(r)
	if err != nil {
		return 0, atLine(err, st.line)
	}
	s, err := r.str(v)
	if err != nil {
		return 0, atLine(err, st.line)
	}
	r.out.add(s)
	return flowNext, atLine(r.over, st.line)
}

func (st *controlStmt) exec(*run) (flow, error) { return st.flow, nil }

func (st *ifStmt) exec(r *run) (flow, error) {
	for i := range st.branches {
		b := &st.branches[i]
		v, err := b.test.eval(r)
		if err != nil {
			return 0, atLine(err, b.line)
		}
		if truth(v) {
			return r.exec(b.body)
		}
	}
	return r.exec(st.otherwise)
}

func (st *setStmt) exec(r *run) (flow, error) {
	if err := r.checkNamespaces(st.target); err != nil {
		return 0, atLine(err, st.line)
	}
	v, err := st.value.eval(r)
	if err == nil {
		err = r.assign(st.target, v)
	}
	return flowNext, atLine(err, st.line)
}

// checkNamespaces refuses "set x.y" where x is no namespace, before the value is computed.
func (r *run) checkNamespaces(target expr) error {
	switch t := target.(type) {
	case *attributeRef:
		if _, ok := r.get(t.object.place).(*namespace); !ok {
			return failf("cannot assign attribute on non-namespace object")
		}
	case *tupleExpr:
		for _, item := range t.items {
			if err := r.checkNamespaces(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// assign stores a value in a target.
func (r *run) assign(target expr, v Value) error {
	switch t := target.(type) {
	case *name:
		r.set(t.place, v)
		return nil
	case *attributeRef:
		ns, ok := r.get(t.object.place).(*namespace)
		if !ok {
			return failf("cannot assign attribute on non-namespace object")
		}
		return ns.attributes.put(Control(t.attribute), v)
	case *tupleExpr:
		return r.unpack(t.items, v)
	}
	panic("BUG: the parser let an expression be assigned to")
}

func (r *run) unpack(targets []expr, v Value) error {
	items, ok := sequence(v)
	if !ok {
		it, err := r.iterate(v)
		if err != nil {
			return failf("cannot unpack non-iterable %s object", v.typeName())
		}
		for len(items) <= len(targets) {
			item, more, err := it.next()
			if err != nil {
				return err
			}
			if !more {
				break
			}
			items = append(items, item)
		}
	}
	if len(items) < len(targets) {
		return failf("not enough values to unpack (expected %d, got %d)", len(targets), len(items))
	}
	if len(items) > len(targets) {
		return failf("too many values to unpack (expected %d)", len(targets))
	}
	for i, t := range targets {
		if err := r.assign(t, items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (st *captureStmt) exec(r *run) (flow, error) {
	if err := r.checkNamespaces(st.target); err != nil {
		return 0, atLine(err, st.line)
	}
	r.enterScope(st.scope)
	s, f, err := r.captureFlow(st.body)
	if err != nil || f != flowNext {
		return f, err
	}
	var v Value = s
	if st.filter != nil {
		if v, err = st.filter.apply(r, s); err != nil {
			return 0, atLine(err, st.line)
		}
	}
	return flowNext, atLine(r.assign(st.target, v), st.line)
}

func (st *filterStmt) exec(r *run) (flow, error) {
	r.enterScope(st.scope)
	s, f, err := r.captureFlow(st.body)
	if err != nil || f != flowNext {
		return f, err
	}
	v, err := st.filter.apply(r, s)
	if err != nil {
		return 0, atLine(err, st.line)
	}
	return flowNext, r.emit(v, st.line)
}

// emit prints the result of a filter or generation block, which Jinja joins into the output as it is: it must be a string.
func (r *run) emit(v Value, line int) error {
	s, ok := v.(Str)
	if !ok {
		return atLine(failf("expected str instance, %s found", v.typeName()), line)
	}
	r.out.add(s)
	return atLine(r.over, line)
}

func (st *withStmt) exec(r *run) (flow, error) {
	r.enterScope(st.scope)
	for i, t := range st.targets {
		v, err := st.values[i].eval(r)
		if err == nil {
			err = r.assign(t, v)
		}
		if err != nil {
			return 0, atLine(err, st.line)
		}
	}
	return r.exec(st.body)
}

func (st *generationStmt) exec(r *run) (flow, error) {
	v, err := r.callMacro(&macro{st.macro, r.here}, args{})
	if err != nil {
		return 0, atLine(err, st.line)
	}
	return flowNext, r.emit(v, st.line)
}

func (st *macroStmt) exec(r *run) (flow, error) {
	r.set(st.target.place, &macro{st.macro, r.here})
	return flowNext, nil
}
