package jinja

// loopContext is the variable "loop".
type loopContext struct {
	run      *run
	source   iterator
	size     int // -1 until known
	index0   int
	current  Value
	previous Value
	ahead    Value // the next element where it was peeked at, else nil
}

func (*loopContext) typeName() string { return "LoopContext" }

// advance moves to the next element.
func (l *loopContext) advance() (Value, bool, error) {
	item := l.ahead
	l.ahead = nil
	if item == nil {
		var more bool
		var err error
		if item, more, err = l.source.next(); !more || err != nil {
			return nil, false, err
		}
	}
	l.index0++
	l.previous, l.current = l.current, item
	return item, true, nil
}

func (l *loopContext) peek() (Value, bool, error) {
	if l.ahead == nil {
		item, more, err := l.source.next()
		if !more || err != nil {
			return nil, false, err
		}
		l.ahead = item
	}
	return l.ahead, true, nil
}

// length counts the elements; it reads a generator to its end to do so.
func (l *loopContext) length() (int, error) {
	if l.size >= 0 {
		return l.size, nil
	}
	items, err := l.run.collectFrom(l.source)
	if err != nil {
		return 0, err
	}
	l.source = &sliceIterator{run: l.run, items: items}
	l.size = len(items) + l.index0 + 1
	if l.ahead != nil {
		l.size++
	}
	return l.size, nil
}

// attribute is loop.id.
func (l *loopContext) attribute(id string) (Value, bool, error) {
	switch id {
	case "index":
		return Int(l.index0 + 1), true, nil
	case "index0":
		return Int(l.index0), true, nil
	case "first":
		return Bool(l.index0 == 0), true, nil
	case "last":
		_, more, err := l.peek()
		return Bool(!more), true, err
	case "length":
		n, err := l.length()
		return Int(n), true, err
	case "revindex":
		n, err := l.length()
		return Int(n - l.index0), true, err
	case "revindex0":
		n, err := l.length()
		return Int(n - l.index0 - 1), true, err
	case "depth":
		return Int(1), true, nil // loops are never recursive
	case "depth0":
		return Int(0), true, nil
	case "previtem":
		if l.index0 == 0 {
			return &undefined{hint: "there is no previous item"}, true, nil
		}
		return l.previous, true, nil
	case "nextitem":
		item, more, err := l.peek()
		if !more || err != nil {
			return &undefined{hint: "there is no next item"}, true, err
		}
		return item, true, nil
	case "cycle":
		return &method{l, "cycle", func(_ *run, a args) (Value, error) {
			if len(a.positional) == 0 {
				return nil, failf("no items for cycling given")
			}
			return a.positional[l.index0%len(a.positional)], nil
		}}, true, nil
	}
	return nil, false, nil
}

func (st *forStmt) exec(r *run) (flow, error) {
	items, err := st.iterable.eval(r)
	if err != nil {
		return 0, atLine(err, st.line)
	}
	return flowNext, st.each(r, items)
}

// each runs the body for every element, or the else branch where there is none.
func (st *forStmt) each(r *run, items Value) error {
	source, err := r.iterate(items)
	if err != nil {
		return atLine(err, st.line)
	}
	size, known := length(items)
	if st.test != nil {
		source, known = &testIterator{r, st, r.here, source}, false
	}
	var loop *loopContext
	if st.loop != nil {
		if !known {
			size = -1
		}
		loop = &loopContext{run: r, source: source, size: size, index0: -1}
		r.set(st.loop.place, loop)
	}
	empty := true
	for {
		var item Value
		var more bool
		if loop != nil {
			item, more, err = loop.advance()
		} else {
			item, more, err = source.next()
		}
		if err == nil && more {
			err = r.assign(st.target, item)
		}
		if err == nil {
			err = r.spend(1)
		}
		if err != nil {
			return atLine(err, st.line)
		}
		if !more {
			break
		}
		r.enterScope(st.bodyScope)
		f, err := r.exec(st.body)
		if err != nil {
			return err
		}
		if f == flowBreak {
			break
		}
		empty = empty && f == flowContinue // only a round that ends counts, as in the code that Jinja generates
	}
	if !empty || len(st.otherwise) == 0 {
		return nil
	}
	r.enterScope(st.elseScope)
	_, err = r.exec(st.otherwise)
	return err
}

// testIterator yields the elements for which the loop's condition holds.
type testIterator struct {
	run    *run
	loop   *forStmt
	here   *activation
	source iterator
}

func (t *testIterator) next() (Value, bool, error) {
	here := t.run.here
	t.run.here = t.here
	defer func() { t.run.here = here }()
	for {
		item, more, err := t.source.next()
		if !more || err != nil {
			return nil, false, err
		}
		if err := t.run.assign(t.loop.testTarget, item); err != nil {
			return nil, false, err
		}
		t.run.enterScope(t.loop.testScope)
		v, err := t.loop.test.eval(t.run)
		if err != nil {
			return nil, false, err
		}
		if truth(v) {
			return item, true, nil
		}
	}
}
