package jinja

// macroDefinition is the body of a macro or generation block.
type macroDefinition struct {
	id         string // empty for a generation block
	parameters []*name
	defaults   []expr // of the last parameters
	body       []stmt
	line       int

	scope           *scope
	kwargs, varargs *name // parameters that the body reads without declaring them
}

// macro is a definition together with the activation that it closes over.
type macro struct {
	definition *macroDefinition
	outer      *activation
}

func (*macro) typeName() string { return "Macro" }

func (m *macroDefinition) hasParameter(id string) bool {
	for _, p := range m.parameters {
		if p.id == id {
			return true
		}
	}
	return false
}

func (p *parser) macro(line int) (stmt, error) {
	id, err := p.expectName()
	if err != nil {
		return nil, err
	}
	m := &macroDefinition{id: id.text, line: line}
	if err := p.signature(m); err != nil {
		return nil, err
	}
	if err := p.macroBody(m, "endmacro"); err != nil {
		return nil, err
	}
	return &macroStmt{&name{id: id.text}, m}, nil
}

func (p *parser) macroBody(m *macroDefinition, end string) error {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	var err error
	m.body, _, err = p.block(end)
	return err
}

func (p *parser) signature(m *macroDefinition) error {
	if err := p.expectOperator("("); err != nil {
		return err
	}
	for !p.peek().isOperator(")") {
		if len(m.parameters) > 0 {
			if err := p.expectOperator(","); err != nil {
				return err
			}
		}
		id, err := p.expectName()
		if err != nil {
			return err
		}
		if m.hasParameter(id.text) {
			return p.failf(id.line, "duplicate parameter %s", quote(id.text))
		}
		if p.skipOperator("=") {
			value, err := p.expression()
			if err != nil {
				return err
			}
			m.defaults = append(m.defaults, value)
		} else if len(m.defaults) > 0 {
			return p.failf(id.line, "non-default argument follows default argument")
		}
		m.parameters = append(m.parameters, &name{id: id.text})
	}
	return p.expectOperator(")")
}

// callMacro renders the body with its parameters set from the arguments.
func (r *run) callMacro(m *macro, a args) (Value, error) {
	d := m.definition
	leave, err := r.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	outer := r.here
	r.here = &activation{slots: make([]Value, len(d.scope.owner.slots)), outer: m.outer}
	defer func() { r.here = outer }()

	if err := r.bindParameters(d, a); err != nil {
		return nil, err
	}
	r.enterScope(d.scope)
	for i, p := range d.parameters {
		if r.get(p.place) != nil {
			continue
		}
		var value Value = &undefined{hint: "parameter " + quote(p.id) + " was not provided", name: Str{text: p.id}}
		if k := i - len(d.parameters) + len(d.defaults); k >= 0 {
			if value, err = d.defaults[k].eval(r); err != nil {
				return nil, err
			}
		}
		r.set(p.place, value)
	}
	return r.capture(d.body)
}

func (r *run) bindParameters(d *macroDefinition, a args) error {
	count := min(len(a.positional), len(d.parameters))
	for i := range count {
		r.set(d.parameters[i].place, a.positional[i])
	}
	for _, p := range d.parameters[count:] {
		if value, ok := a.take(p.id); ok {
			r.set(p.place, value)
		}
	}
	if d.kwargs != nil {
		rest := NewDict()
		for _, k := range a.named {
			rest.Set(Control(k.id), k.value)
		}
		r.set(d.kwargs.place, rest)
	} else if len(a.named) > 0 {
		return failf("macro %s takes no keyword argument %s", d.quotedName(), quote(a.named[0].id))
	}
	if d.varargs != nil {
		r.set(d.varargs.place, &Tuple{items: a.positional[count:]})
	} else if len(a.positional) > len(d.parameters) {
		return failf("macro %s takes not more than %d argument(s)", d.quotedName(), len(d.parameters))
	}
	return nil
}

func (d *macroDefinition) quotedName() string {
	if d.id == "" {
		return "None"
	}
	return quote(d.id)
}
