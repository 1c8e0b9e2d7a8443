package jinja

// This file says for every statement which names it declares in its own scope and which scopes it opens.

func (*textStmt) declare(*scope)         {}
func (*controlStmt) declare(*scope)      {}
func (*generationStmt) declare(*scope)   {}
func (st *printStmt) declare(s *scope)   { s.declare(st.value) }
func (st *forStmt) declare(s *scope)     { s.declare(st.iterable) }
func (st *captureStmt) declare(s *scope) { s.declareTarget(st.target, false) }
func (st *filterStmt) declare(s *scope)  { s.declare(st.filter) }
func (st *macroStmt) declare(s *scope)   { s.store(st.target.id) }

func (st *setStmt) declare(s *scope) {
	s.declare(st.value)
	s.declareTarget(st.target, false)
}

func (st *withStmt) declare(s *scope) {
	for _, v := range st.values {
		s.declare(v)
	}
}

// declare treats an elif as an if within the else of the one before.
func (st *ifStmt) declare(s *scope) { declareBranches(s, st.branches, st.otherwise) }

func declareBranches(s *scope, branches []branch, otherwise []stmt) {
	s.declare(branches[0].test)
	body, rest, last := s.fork(), s.fork(), s.fork()
	body.declareBody(branches[0].body)
	for _, b := range branches[1:] {
		declareBranches(rest, []branch{b}, nil)
	}
	last.declareBody(otherwise)
	s.join([]*scope{body, rest, last})
}

func (*textStmt) bind(binder) error    { return nil }
func (*controlStmt) bind(binder) error { return nil }

func (st *printStmt) bind(b binder) error { return b.expr(st.value) }

func (st *ifStmt) bind(b binder) error {
	b.soft = true
	for _, branch := range st.branches {
		if err := b.expr(branch.test); err != nil {
			return err
		}
		if err := b.body(branch.body); err != nil {
			return err
		}
	}
	return b.body(st.otherwise)
}

func (st *setStmt) bind(b binder) error {
	if err := b.expr(st.value); err != nil {
		return err
	}
	return b.expr(st.target)
}

func (st *forStmt) bind(b binder) error {
	if err := b.expr(st.iterable); err != nil {
		return err
	}
	body, test, otherwise := b.scope.inner(), b.scope.inner(), b.scope.inner()
	if reads(st.body, "loop") {
		st.loop = &name{id: "loop"}
		body.parameter("loop")
	}
	body.declareTarget(st.target, true)
	body.declareBody(st.body)
	otherwise.declareBody(st.otherwise)
	st.bodyScope, st.testScope, st.elseScope = body, test, otherwise

	if st.test != nil {
		// loop.last looks ahead while the body runs, so the test has variables of its own.
		test.level = -test.level
		st.testTarget = copyTarget(st.target)
		test.declareTarget(st.testTarget, true)
		test.declare(st.test)
		b.in(test).seal()
		if err := b.in(test).expr(st.testTarget); err != nil {
			return err
		}
		if err := b.in(test).expr(st.test); err != nil {
			return err
		}
	}
	b.in(body).seal()
	if st.loop != nil {
		st.loop.place = body.place("loop")
	}
	if err := b.in(body).expr(st.target); err != nil {
		return err
	}
	if err := b.in(body).body(st.body); err != nil {
		return err
	}
	b.in(otherwise).seal()
	return b.in(otherwise).body(st.otherwise)
}

func (st *captureStmt) bind(b binder) error {
	st.scope = b.scope.inner()
	st.scope.declareBody(st.body)
	if st.filter != nil {
		st.scope.declare(st.filter)
	}
	in := b.in(st.scope)
	in.seal()
	if err := in.body(st.body); err != nil {
		return err
	}
	if st.filter != nil {
		if err := in.expr(st.filter); err != nil {
			return err
		}
	}
	return b.expr(st.target)
}

func (st *filterStmt) bind(b binder) error {
	st.scope = b.scope.inner()
	st.scope.declareBody(st.body)
	st.scope.declare(st.filter)
	in := b.in(st.scope)
	in.seal()
	if err := in.body(st.body); err != nil {
		return err
	}
	return in.expr(st.filter)
}

func (st *withStmt) bind(b binder) error {
	st.scope = b.scope.inner()
	for _, t := range st.targets {
		st.scope.declareTarget(t, true)
	}
	st.scope.declareBody(st.body)
	in := b.in(st.scope)
	in.seal()
	for i := range st.targets {
		if err := b.expr(st.values[i]); err != nil {
			return err
		}
		if err := in.expr(st.targets[i]); err != nil {
			return err
		}
	}
	return in.body(st.body)
}

func (st *generationStmt) bind(b binder) error { return st.macro.bind(b) }

func (st *macroStmt) bind(b binder) error {
	if err := st.macro.bind(b); err != nil {
		return err
	}
	return b.expr(st.target)
}

// bind opens the function of a macro. The names kwargs and varargs become parameters when the body reads them.
func (m *macroDefinition) bind(b binder) error {
	s := b.scope.innerFunction()
	for _, p := range m.parameters {
		s.parameter(p.id)
	}
	m.kwargs, m.varargs = nil, nil
	special := func(id string) *name {
		if m.hasParameter(id) || !reads(m.body, id) {
			return nil
		}
		s.parameter(id)
		return &name{id: id}
	}
	m.kwargs, m.varargs = special("kwargs"), special("varargs")
	for _, d := range m.defaults {
		s.declare(d)
	}
	s.declareBody(m.body)
	m.scope = s
	in := b.in(s)
	in.seal()
	for _, n := range append([]*name{m.kwargs, m.varargs}, m.parameters...) {
		if n != nil {
			n.place = s.place(n.id)
		}
	}
	for _, d := range m.defaults {
		if err := in.expr(d); err != nil {
			return err
		}
	}
	return in.body(m.body)
}

func copyTarget(e expr) expr {
	switch e := e.(type) {
	case *name:
		return &name{id: e.id}
	case *tupleExpr:
		c := &tupleExpr{}
		for _, item := range e.items {
			c.items = append(c.items, copyTarget(item))
		}
		return c
	}
	return e
}

// reads says whether a body, or anything in it, reads the variable id.
func reads(body []stmt, id string) bool {
	found := false
	var look func(expr)
	look = func(e expr) {
		if n, ok := e.(*name); ok && n.id == id {
			found = true
		}
		if !found {
			e.children(look)
		}
	}
	for _, st := range body {
		st.reads(look)
	}
	return found
}

func readsBody(body []stmt, visit func(expr)) {
	for _, st := range body {
		st.reads(visit)
	}
}

func (*textStmt) reads(func(expr))            {}
func (*controlStmt) reads(func(expr))         {}
func (st *printStmt) reads(v func(expr))      { v(st.value) }
func (st *setStmt) reads(v func(expr))        { v(st.value) }
func (st *macroStmt) reads(v func(expr))      { st.macro.reads(v) }
func (st *generationStmt) reads(v func(expr)) { st.macro.reads(v) }

func (st *ifStmt) reads(v func(expr)) {
	for _, b := range st.branches {
		v(b.test)
		readsBody(b.body, v)
	}
	readsBody(st.otherwise, v)
}

func (st *forStmt) reads(v func(expr)) {
	each([]expr{st.iterable, st.test}, v)
	readsBody(st.body, v)
	readsBody(st.otherwise, v)
}

func (st *captureStmt) reads(v func(expr)) {
	if st.filter != nil {
		v(st.filter)
	}
	readsBody(st.body, v)
}

func (st *filterStmt) reads(v func(expr)) {
	v(st.filter)
	readsBody(st.body, v)
}

func (st *withStmt) reads(v func(expr)) {
	each(st.values, v)
	readsBody(st.body, v)
}

func (m *macroDefinition) reads(v func(expr)) {
	each(m.defaults, v)
	readsBody(m.body, v)
}
