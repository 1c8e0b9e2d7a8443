package jinja

import "strconv"

// postfix reads attributes, subscripts and calls behind a value.
func (p *parser) postfix(e expr) (expr, error) {
	for {
		var err error
		switch t := p.peek(); {
		case t.isOperator("."):
			p.pos++
			e, err = p.dotted(e)
		case t.isOperator("["):
			p.pos++
			e, err = p.subscript(e)
		case t.isOperator("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
		if err == nil {
			err = p.grow()
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) dotted(e expr) (expr, error) {
	t := p.next()
	switch t.kind {
	case tokenName:
		return &attribute{e, Control(t.text)}, nil
	case tokenInteger:
		n, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil {
			return nil, p.failf(t.line, "bad index %s", t.text)
		}
		return &subscript{e, &constant{Int(n)}}, nil
	}
	return nil, p.failf(t.line, "expected name or number")
}

func (p *parser) subscript(object expr) (expr, error) {
	var items []expr
	line := p.peek().line
	for !p.peek().isOperator("]") {
		if len(items) > 0 {
			if err := p.expectOperator(","); err != nil {
				return nil, err
			}
		}
		e, err := p.index(object)
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	if err := p.expectOperator("]"); err != nil {
		return nil, err
	}
	if len(items) == 1 {
		if s, ok := items[0].(*slicing); ok && s.object == object {
			return s, nil
		}
		return &subscript{object, items[0]}, nil
	}
	for _, e := range items {
		if s, ok := e.(*slicing); ok && s.object == object {
			return nil, p.failf(line, "a slice cannot be part of a tuple")
		}
	}
	return &subscript{object, &tupleExpr{items}}, nil
}

// index reads what stands in square brackets: an expression or a slice of object.
func (p *parser) index(object expr) (expr, error) {
	s := &slicing{object: object}
	var err error
	if !p.skipOperator(":") {
		if s.start, err = p.expression(); err != nil {
			return nil, err
		}
		if !p.skipOperator(":") {
			return s.start, nil
		}
	}
	ends := func() bool {
		t := p.peek()
		return t.isOperator("]") || t.isOperator(",")
	}
	if !ends() && !p.peek().isOperator(":") {
		if s.stop, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.skipOperator(":") && !ends() {
		if s.step, err = p.expression(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) call(e expr) (expr, error) {
	arguments, err := p.arguments()
	return &call{e, arguments}, err
}

func (p *parser) arguments() (arguments, error) {
	var a arguments
	line := p.peek().line
	if err := p.expectOperator("("); err != nil {
		return a, err
	}
	bad := func() error { return p.failf(line, "invalid syntax for function call expression") }
	for first := true; !p.peek().isOperator(")"); first = false {
		if !first {
			if err := p.expectOperator(","); err != nil {
				return a, err
			}
			if p.peek().isOperator(")") {
				break
			}
		}
		var err error
		switch t := p.peek(); {
		case t.isOperator("*"):
			if a.star != nil || a.starStar != nil {
				return a, bad()
			}
			p.pos++
			a.star, err = p.expression()
		case t.isOperator("**"):
			if a.starStar != nil {
				return a, bad()
			}
			p.pos++
			a.starStar, err = p.expression()
		case t.kind == tokenName && p.tokens[p.pos+1].isOperator("="):
			if a.starStar != nil {
				return a, bad()
			}
			p.pos += 2
			var e expr
			e, err = p.expression()
			a.names, a.named = append(a.names, t.text), append(a.named, e)
		default:
			if a.star != nil || a.starStar != nil || len(a.named) > 0 {
				return a, bad()
			}
			var e expr
			e, err = p.expression()
			a.positional = append(a.positional, e)
		}
		if err != nil {
			return a, err
		}
	}
	return a, p.expectOperator(")")
}

// filtersAndTests reads "| filter", "is test" and calls behind a value.
func (p *parser) filtersAndTests(e expr) (expr, error) {
	for {
		var err error
		switch t := p.peek(); {
		case t.isOperator("|"):
			e, err = p.filters(e)
		case t.isName("is"):
			e, err = p.test(e)
		case t.isOperator("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
		if err == nil {
			err = p.grow()
		}
		if err != nil {
			return nil, err
		}
	}
}

// filters reads a chain of filters; the current token stands before the first name.
func (p *parser) filters(e expr) (expr, error) {
	for {
		p.pos++
		id, err := p.dottedName()
		if err != nil {
			return nil, err
		}
		f := &filterExpr{operand: e, id: id.text, line: id.line}
		if p.peek().isOperator("(") {
			if f.arguments, err = p.arguments(); err != nil {
				return nil, err
			}
		}
		e = f
		if err := p.grow(); err != nil {
			return nil, err
		}
		if !p.peek().isOperator("|") {
			return e, nil
		}
	}
}

func (p *parser) dottedName() (token, error) {
	id, err := p.expectName()
	for err == nil && p.skipOperator(".") {
		var part token
		part, err = p.expectName()
		id.text += "." + part.text
	}
	return id, err
}

func (p *parser) test(operand expr) (expr, error) {
	p.pos++
	negated := p.skipName("not")
	id, err := p.dottedName()
	if err != nil {
		return nil, err
	}
	t := &testExpr{operand: operand, id: id.text, line: id.line}
	switch next := p.peek(); {
	case next.isOperator("("):
		if t.arguments, err = p.arguments(); err != nil {
			return nil, err
		}
	case next.isName("is"):
		return nil, p.failf(next.line, "You cannot chain multiple tests with is")
	case next.isName("else"), next.isName("or"), next.isName("and"):
	case next.kind == tokenName, next.kind == tokenString, next.kind == tokenInteger, next.kind == tokenFloat,
		next.isOperator("["), next.isOperator("{"):
		e, err := p.primary(false)
		if err != nil {
			return nil, err
		}
		if e, err = p.postfix(e); err != nil {
			return nil, err
		}
		t.arguments.positional = []expr{e}
	}
	if negated {
		return &negation{t}, nil
	}
	return t, nil
}
