package jinja

import (
	"fmt"
	"strings"
)

// maxHeight bounds the height of the syntax tree, and with it the stack of a render: blocks and brackets count, and so do the
// operators of one expression.
const maxHeight = 500

// parser reads statements; expression.go reads what stands inside tags.
type parser struct {
	tokens []token
	pos    int
	height int      // of the tree above the current token
	loops  int      // for loops around the current statement, in the current macro
	tags   []string // open blocks, for messages
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEOF {
		p.pos++
	}
	return t
}

func (t token) isName(id string) bool    { return t.kind == tokenName && t.text == id }
func (t token) isOperator(o string) bool { return t.kind == tokenOperator && t.text == o }

func (p *parser) skipName(id string) bool {
	if p.peek().isName(id) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipOperator(o string) bool {
	if p.peek().isOperator(o) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) failf(line int, format string, values ...any) error {
	return &Error{Kind: Syntax, Line: line, Message: fmt.Sprintf(format, values...)}
}

func (p *parser) unexpected(want string) error {
	t := p.peek()
	if t.kind == tokenEOF {
		return p.failf(t.line, "unexpected end of template, expected %s.", quote(want))
	}
	return p.failf(t.line, "expected token %s, got %s", quote(want), quote(t.describe()))
}

func (p *parser) expectOperator(o string) error {
	if !p.skipOperator(o) {
		return p.unexpected(o)
	}
	return nil
}

func (p *parser) expectName() (token, error) {
	if p.peek().kind != tokenName {
		return token{}, p.unexpected("name")
	}
	return p.next(), nil
}

func (p *parser) expectKind(kind tokenKind) error {
	if p.peek().kind != kind {
		return p.unexpected(token{kind: kind}.describe())
	}
	p.pos++
	return nil
}

// enter starts a level of nesting; the result ends it, with all that grew within.
func (p *parser) enter() (leave func(), err error) {
	height := p.height
	return func() { p.height = height }, p.grow()
}

// grow counts one node on the path to the current token.
func (p *parser) grow() error {
	p.height++
	if p.height > maxHeight {
		return &Error{Kind: Limit, Line: p.peek().line, Message: fmt.Sprintf("the template nests more than %d levels and operators (set parts of it first)", maxHeight)}
	}
	return nil
}

// template reads everything up to the end of the source.
func (p *parser) template() ([]stmt, error) {
	body, _, err := p.until()
	return body, err
}

// until reads statements up to a tag with one of these names and returns that name, its tag still open. Without names it
// reads to the end of the template.
func (p *parser) until(ends ...string) ([]stmt, string, error) {
	var body []stmt
	for {
		t := p.next()
		switch t.kind {
		case tokenEOF:
			if len(ends) > 0 {
				return nil, "", p.endOfTemplate(t.line, ends)
			}
			return body, "", nil
		case tokenData:
			body = append(body, &textStmt{Control(t.text)})
		case tokenVariableBegin:
			value, err := p.tuple(true, nil, false)
			if err != nil {
				return nil, "", err
			}
			if err := p.expectKind(tokenVariableEnd); err != nil {
				return nil, "", err
			}
			body = append(body, &printStmt{value, t.line})
		case tokenBlockBegin:
			tag := p.peek()
			if tag.kind != tokenName {
				return nil, "", p.failf(tag.line, "tag name expected")
			}
			for _, end := range ends {
				if tag.text == end {
					p.next()
					return body, end, nil
				}
			}
			st, err := p.statement(tag, ends)
			if err != nil {
				return nil, "", err
			}
			if err := p.expectKind(tokenBlockEnd); err != nil {
				return nil, "", err
			}
			body = append(body, st)
		}
	}
}

func (p *parser) endOfTemplate(line int, ends []string) error {
	message := "Unexpected end of template. Jinja was looking for the following tags: " + quoteAll(ends) + "."
	if len(p.tags) > 0 {
		message += " The innermost block that needs to be closed is " + quote(p.tags[len(p.tags)-1]) + "."
	}
	return p.failf(line, "%s", message)
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	return strings.Join(quoted, " or ")
}

// block reads the rest of a tag and the statements up to one of the ends.
func (p *parser) block(ends ...string) ([]stmt, string, error) {
	p.skipOperator(":")
	if err := p.expectKind(tokenBlockEnd); err != nil {
		return nil, "", err
	}
	return p.until(ends...)
}

func (p *parser) statement(tag token, ends []string) (stmt, error) {
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	p.tags = append(p.tags, tag.text)
	defer func() { p.tags = p.tags[:len(p.tags)-1] }()
	p.next()
	switch tag.text {
	case "if":
		return p.ifBlock()
	case "for":
		return p.forBlock(tag.line)
	case "set":
		return p.set(tag.line)
	case "macro":
		return p.macro(tag.line)
	case "filter":
		return p.filterBlock(tag.line)
	case "with":
		return p.with(tag.line)
	case "generation":
		m := &macroDefinition{line: tag.line}
		return &generationStmt{m, tag.line}, p.macroBody(m, "endgeneration")
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.failf(tag.line, "'%s' outside loop", tag.text)
		}
		if tag.text == "break" {
			return &controlStmt{flowBreak}, nil
		}
		return &controlStmt{flowContinue}, nil
	case "call":
		return nil, p.failf(tag.line, "tag %s is not available in chat templates (call the macro in {{ }})", quote(tag.text))
	case "block", "extends", "include", "import", "from", "autoescape":
		return nil, p.failf(tag.line, "tag %s is not available in chat templates (there are no other templates to load)", quote(tag.text))
	}
	message := "Encountered unknown tag " + quote(tag.text) + "."
	if len(ends) > 0 {
		message += " Jinja was looking for the following tags: " + quoteAll(ends) + "."
	}
	return nil, p.failf(tag.line, "%s", message)
}

func (p *parser) ifBlock() (stmt, error) {
	st := &ifStmt{}
	for {
		line := p.peek().line
		test, err := p.tuple(false, nil, false)
		if err != nil {
			return nil, err
		}
		body, end, err := p.block("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		st.branches = append(st.branches, branch{test, body, line})
		switch end {
		case "elif":
			continue
		case "else":
			st.otherwise, _, err = p.block("endif")
		}
		return st, err
	}
}

func (p *parser) forBlock(line int) (stmt, error) {
	st := &forStmt{line: line}
	var err error
	if st.target, err = p.target(false, "in"); err != nil {
		return nil, err
	}
	if bindsLoop(st.target) {
		return nil, p.failf(line, "Can't assign to special loop variable in for-loop target")
	}
	if !p.skipName("in") {
		return nil, p.unexpected("in")
	}
	if st.iterable, err = p.tuple(false, func(t token) bool { return t.isName("recursive") }, false); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if st.test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.skipName("recursive") {
		return nil, p.failf(line, "recursive loops are not available in chat templates (use a macro that calls itself)")
	}
	p.loops++
	body, end, err := p.block("endfor", "else")
	p.loops--
	if err != nil {
		return nil, err
	}
	st.body = body
	if end == "else" {
		st.otherwise, _, err = p.block("endfor")
	}
	return st, err
}

func bindsLoop(target expr) bool {
	switch t := target.(type) {
	case *name:
		return t.id == "loop"
	case *tupleExpr:
		for _, item := range t.items {
			if bindsLoop(item) {
				return true
			}
		}
	}
	return false
}

func (p *parser) set(line int) (stmt, error) {
	target, err := p.target(true, "")
	if err != nil {
		return nil, err
	}
	if p.skipOperator("=") {
		value, err := p.tuple(true, nil, false)
		return &setStmt{target, value, line}, err
	}
	st := &captureStmt{target: target, line: line}
	if p.peek().isOperator("|") {
		filtered, err := p.filters(nil)
		if err != nil {
			return nil, err
		}
		st.filter = filtered.(*filterExpr)
	}
	st.body, _, err = p.block("endset")
	return st, err
}

func (p *parser) filterBlock(line int) (stmt, error) {
	p.pos-- // read the tag's name as the bar of the first filter
	filtered, err := p.filters(nil)
	if err != nil {
		return nil, err
	}
	st := &filterStmt{filter: filtered.(*filterExpr), line: line}
	st.body, _, err = p.block("endfilter")
	return st, err
}

func (p *parser) with(line int) (stmt, error) {
	st := &withStmt{line: line}
	for p.peek().kind != tokenBlockEnd && !p.peek().isOperator(":") {
		if len(st.targets) > 0 {
			if err := p.expectOperator(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(false, "")
		if err != nil {
			return nil, err
		}
		if err := p.expectOperator("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		st.targets, st.values = append(st.targets, target), append(st.values, value)
	}
	var err error
	st.body, _, err = p.block("endwith")
	return st, err
}
