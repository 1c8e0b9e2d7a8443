package jinja

import (
	"math/big"
	"strconv"
	"strings"
)

// expression reads a full expression: conditional, or, and, not, comparison, sum, concatenation, product, power, unary.
func (p *parser) expression() (expr, error) {
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	e, err := p.or()
	for err == nil && p.peek().isName("if") {
		line := p.next().line
		c := &conditional{yes: e, line: line}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skipName("else") {
			if c.no, err = p.expression(); err != nil {
				return nil, err
			}
		}
		e, err = c, p.grow()
	}
	return e, err
}

func (p *parser) or() (expr, error) {
	left, err := p.and()
	for err == nil && p.skipName("or") {
		var right expr
		if right, err = p.and(); err == nil {
			left, err = &logical{or: true, left: left, right: right}, p.grow()
		}
	}
	return left, err
}

func (p *parser) and() (expr, error) {
	left, err := p.not()
	for err == nil && p.skipName("and") {
		var right expr
		if right, err = p.not(); err == nil {
			left, err = &logical{left: left, right: right}, p.grow()
		}
	}
	return left, err
}

func (p *parser) not() (expr, error) {
	if !p.skipName("not") {
		return p.comparison()
	}
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	operand, err := p.not()
	return &negation{operand}, err
}

func (p *parser) comparison() (expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compare{first: first}
	for {
		operator := ""
		switch t := p.peek(); {
		case t.kind == tokenOperator && (t.text == "==" || t.text == "!=" || t.text == "<" || t.text == "<=" || t.text == ">" || t.text == ">="):
			operator = t.text
			p.pos++
		case t.isName("in"):
			operator = "in"
			p.pos++
		case t.isName("not") && p.tokens[p.pos+1].isName("in"):
			operator = "not in"
			p.pos += 2
		}
		if operator == "" {
			break
		}
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.operators, c.rest = append(c.operators, operator), append(c.rest, right)
	}
	if len(c.rest) == 0 {
		return first, nil
	}
	return c, nil
}

// leftToRight reads operands joined by these operators.
func (p *parser) leftToRight(operand func() (expr, error), operators ...string) (expr, error) {
	left, err := operand()
	for err == nil {
		t := p.peek()
		found := ""
		for _, o := range operators {
			if t.isOperator(o) {
				found = o
			}
		}
		if found == "" {
			return left, nil
		}
		p.pos++
		var right expr
		if right, err = operand(); err == nil {
			left, err = &operation{found, left, right}, p.grow()
		}
	}
	return nil, err
}

func (p *parser) sum() (expr, error) { return p.leftToRight(p.concatenation, "+", "-") }

func (p *parser) concatenation() (expr, error) {
	first, err := p.product()
	if err != nil || !p.peek().isOperator("~") {
		return first, err
	}
	c := &concat{parts: []expr{first}}
	for p.skipOperator("~") {
		part, err := p.product()
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, part)
	}
	return c, nil
}

func (p *parser) product() (expr, error) { return p.leftToRight(p.power, "*", "/", "//", "%") }

func (p *parser) power() (expr, error) {
	return p.leftToRight(func() (expr, error) { return p.unary(true) }, "**")
}

func (p *parser) unary(filtered bool) (expr, error) {
	var e expr
	var err error
	if t := p.peek(); t.isOperator("-") || t.isOperator("+") {
		leave, failed := p.enter()
		if failed != nil {
			return nil, failed
		}
		defer leave()
		p.pos++
		var operand expr
		operand, err = p.unary(false)
		e = &unary{t.text, operand}
	} else {
		e, err = p.primary(false)
	}
	if err != nil {
		return nil, err
	}
	if e, err = p.postfix(e); err != nil || !filtered {
		return e, err
	}
	return p.filtersAndTests(e)
}

func (p *parser) primary(namespaces bool) (expr, error) {
	t := p.peek()
	switch {
	case t.kind == tokenName:
		p.pos++
		switch t.text {
		case "true", "True":
			return &constant{Bool(true)}, nil
		case "false", "False":
			return &constant{Bool(false)}, nil
		case "none", "None":
			return &constant{None{}}, nil
		}
		if namespaces && p.skipOperator(".") {
			id, err := p.expectName()
			return &attributeRef{&name{id: t.text}, id.text}, err
		}
		return &name{id: t.text}, nil
	case t.kind == tokenString:
		var text strings.Builder
		for p.peek().kind == tokenString {
			text.WriteString(p.next().text)
		}
		return &constant{Control(text.String())}, nil
	case t.kind == tokenInteger:
		p.pos++
		return p.integer(t)
	case t.kind == tokenFloat:
		p.pos++
		f, _ := strconv.ParseFloat(t.text, 64) // out of range is an infinity, as in Python
		return &constant{Float(f)}, nil
	case t.isOperator("("):
		p.pos++
		e, err := p.tuple(true, nil, true)
		if err != nil {
			return nil, err
		}
		return e, p.expectOperator(")")
	case t.isOperator("["):
		p.pos++
		items, err := p.listItems()
		return &listExpr{items}, err
	case t.isOperator("{"):
		p.pos++
		return p.dict()
	}
	return nil, p.failf(t.line, "unexpected %s", quote(t.describe()))
}

func (p *parser) integer(t token) (expr, error) {
	if len(t.text) > maxIntegerDigits {
		return nil, p.failf(t.line, "an integer has more than %d digits", maxIntegerDigits)
	}
	n, ok := new(big.Int).SetString(t.text, 0)
	if !ok {
		return nil, p.failf(t.line, "bad integer %s", t.text)
	}
	return &constant{integer(n)}, nil
}

func (p *parser) listItems() ([]expr, error) {
	var items []expr
	for !p.peek().isOperator("]") {
		if len(items) > 0 {
			if err := p.expectOperator(","); err != nil {
				return nil, err
			}
			if p.peek().isOperator("]") {
				break
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	return items, p.expectOperator("]")
}

func (p *parser) dict() (expr, error) {
	d := &dictExpr{}
	for !p.peek().isOperator("}") {
		if len(d.keys) > 0 {
			if err := p.expectOperator(","); err != nil {
				return nil, err
			}
			if p.peek().isOperator("}") {
				break
			}
		}
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expectOperator(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
	}
	return d, p.expectOperator("}")
}

// tuple reads one expression, or several with commas as a tuple. ends tells what besides a closing bracket or tag ends it.
func (p *parser) tuple(conditional bool, ends func(token) bool, parentheses bool) (expr, error) {
	operand := p.expression
	if !conditional {
		operand = p.or
	}
	return p.commaList(operand, ends, parentheses)
}

func (p *parser) commaList(operand func() (expr, error), ends func(token) bool, parentheses bool) (expr, error) {
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	t := &tupleExpr{}
	commas := false
	for {
		end := p.peek()
		if end.kind == tokenVariableEnd || end.kind == tokenBlockEnd || end.isOperator(")") || ends != nil && ends(end) {
			break
		}
		e, err := operand()
		if err != nil {
			return nil, err
		}
		t.items = append(t.items, e)
		if !p.skipOperator(",") {
			break
		}
		commas = true
	}
	if commas {
		return t, nil
	}
	if len(t.items) == 1 {
		return t.items[0], nil
	}
	if !parentheses {
		return nil, p.failf(p.peek().line, "Expected an expression, got %s", quote(p.peek().describe()))
	}
	return t, nil
}

// target reads what an assignment or a loop assigns to; end is the name that ends it.
func (p *parser) target(namespaces bool, end string) (expr, error) {
	line := p.peek().line
	ends := func(t token) bool { return end != "" && t.isName(end) }
	e, err := p.commaList(func() (expr, error) { return p.primary(namespaces) }, ends, false)
	if err != nil {
		return nil, err
	}
	return e, p.assignable(e, line)
}

func (p *parser) assignable(e expr, line int) error {
	switch e := e.(type) {
	case *name, *attributeRef:
		return nil
	case *tupleExpr:
		for _, item := range e.items {
			if err := p.assignable(item, line); err != nil {
				return err
			}
		}
		return nil
	}
	return p.failf(line, "can't assign to a value that is no name")
}
