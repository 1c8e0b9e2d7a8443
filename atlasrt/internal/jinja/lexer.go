package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tokenKind tells the parser what a token is.
type tokenKind int

const (
	tokenEOF tokenKind = iota
	tokenData
	tokenVariableBegin
	tokenVariableEnd
	tokenBlockBegin
	tokenBlockEnd
	tokenName
	tokenString
	tokenInteger
	tokenFloat
	tokenOperator
)

// token is one lexical element; text is the unescaped string, the name, the operator or the digits.
type token struct {
	kind tokenKind
	line int
	text string
}

// describe names the token in messages.
func (t token) describe() string {
	switch t.kind {
	case tokenEOF:
		return "end of template"
	case tokenData:
		return "template data / text"
	case tokenVariableBegin:
		return "begin of print statement"
	case tokenVariableEnd:
		return "end of print statement"
	case tokenBlockBegin:
		return "begin of statement block"
	case tokenBlockEnd:
		return "end of statement block"
	case tokenString:
		return "string"
	case tokenInteger:
		return "integer"
	case tokenFloat:
		return "float"
	}
	return t.text
}

// lexer splits a template into tokens, with trim_blocks and lstrip_blocks on.
type lexer struct {
	source   string
	pos      int
	line     int
	newline  bool // the last tag ended with a line break, so text that follows starts a line
	brackets []byte
	tokens   []token
}

// lex returns the tokens of a template, the last one tokenEOF.
func lex(source string) ([]token, error) {
	if !utf8.ValidString(source) {
		return nil, &Error{Kind: Syntax, Message: "the template is not UTF-8"}
	}
	source = normalizeNewlines(source)
	source = strings.TrimSuffix(source, "\n")
	l := &lexer{source: source, line: 1, newline: true, tokens: make([]token, 0, 16+len(source)/6)}
	for l.pos < len(l.source) {
		if err := l.text(); err != nil {
			return nil, err
		}
	}
	l.emit(tokenEOF, "")
	return l.tokens, nil
}

func normalizeNewlines(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind, l.line, text})
}

func (l *lexer) failf(format string, values ...any) error {
	return &Error{Kind: Syntax, Line: l.line, Message: fmt.Sprintf(format, values...)}
}

// advance moves to pos and counts the lines that it passes.
func (l *lexer) advance(pos int) {
	l.line += strings.Count(l.source[l.pos:pos], "\n")
	l.newline = pos > 0 && l.source[pos-1] == '\n'
	l.pos = pos
}

// text reads up to the next tag, and that tag.
func (l *lexer) text() error {
	start := l.pos
	open := l.findTag()
	if open < 0 {
		l.emit(tokenData, l.source[start:])
		l.advance(len(l.source))
		return nil
	}
	kind := l.source[open+1]
	body := open + 2
	sign := byte(0)
	if body < len(l.source) && (l.source[body] == '-' || l.source[body] == '+') {
		sign = l.source[body]
		body++
	}
	data := stripBefore(l.source[start:open], sign, kind != '{', l.newline)
	if data != "" {
		l.emit(tokenData, data)
	}
	l.advance(body)
	switch kind {
	case '#':
		return l.comment()
	case '%':
		if end, ok := rawTag(l.source[body:], "raw", false); ok {
			l.advance(body + end)
			return l.raw()
		}
		l.emit(tokenBlockBegin, "")
		return l.tag('%', tokenBlockEnd)
	}
	l.emit(tokenVariableBegin, "")
	return l.tag('}', tokenVariableEnd)
}

// findTag is the position of the next {{, {% or {#.
func (l *lexer) findTag() int {
	for i := l.pos; ; {
		j := strings.IndexByte(l.source[i:], '{')
		if j < 0 || i+j+1 >= len(l.source) {
			return -1
		}
		i += j
		switch l.source[i+1] {
		case '{', '%', '#':
			return i
		}
		i++
	}
}

// stripBefore removes the white space that a tag takes from the text before it: all of it for "-", and for a block or comment
// without a sign the indentation when nothing else is on the line.
func stripBefore(text string, sign byte, block, lineStart bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || !block {
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || lineStart) && strings.TrimLeftFunc(text[line:], isSpace) == "" {
		return text[:line]
	}
	return text
}

// tagEnd matches the end of a tag at the start of rest: its size with the white space it takes.
func tagEnd(rest string, closing byte, plus bool) (int, bool) {
	end := string([]byte{closing, '}'})
	switch {
	case strings.HasPrefix(rest, "-"+end):
		return len(rest) - len(strings.TrimLeftFunc(rest[3:], isSpace)), true
	case plus && strings.HasPrefix(rest, "+"+end):
		return 3, true
	case strings.HasPrefix(rest, end):
		if closing != '}' && len(rest) > 2 && rest[2] == '\n' {
			return 3, true
		}
		return 2, true
	}
	return 0, false
}

// rawTag matches "raw" or "endraw" and the end of its tag.
func rawTag(rest, name string, trim bool) (size int, ok bool) {
	body := strings.TrimLeftFunc(rest, isSpace)
	body, ok = strings.CutPrefix(body, name)
	if !ok {
		return 0, false
	}
	body = strings.TrimLeftFunc(body, isSpace)
	end, ok := tagEnd(body, '%', trim)
	if !ok {
		return 0, false
	}
	if !trim && body[0] == '%' {
		end = 2 // the start of a raw block keeps the line break after it
	}
	return len(rest) - len(body) + end, true
}

func (l *lexer) comment() error {
	end := strings.Index(l.source[l.pos:], "#}")
	if end < 0 {
		return l.failf("Missing end of comment tag")
	}
	from := l.pos + end
	if from > l.pos && (l.source[from-1] == '-' || l.source[from-1] == '+') {
		from--
	}
	size, _ := tagEnd(l.source[from:], '#', true)
	l.advance(from + size)
	return nil
}

// raw emits everything up to endraw as text.
func (l *lexer) raw() error {
	start := l.pos
	for i := start; ; i += 2 {
		j := strings.Index(l.source[i:], "{%")
		if j < 0 {
			return l.failf("Missing end of raw directive")
		}
		i += j
		body, sign := i+2, byte(0)
		if body < len(l.source) && (l.source[body] == '-' || l.source[body] == '+') {
			sign = l.source[body]
			body++
		}
		size, ok := rawTag(l.source[body:], "endraw", true)
		if !ok {
			continue
		}
		if data := stripBefore(l.source[start:i], sign, true, l.newline); data != "" {
			l.emit(tokenData, data)
		}
		l.advance(body + size)
		return nil
	}
}

// tag reads the tokens of a tag up to its end.
func (l *lexer) tag(closing byte, end tokenKind) error {
	l.brackets = l.brackets[:0]
	for l.pos < len(l.source) {
		rest := l.source[l.pos:]
		if len(l.brackets) == 0 {
			if size, ok := tagEnd(rest, closing, closing == '%'); ok {
				l.emit(end, "")
				l.advance(l.pos + size)
				return nil
			}
		}
		if trimmed := strings.TrimLeftFunc(rest, isSpace); len(trimmed) < len(rest) {
			l.advance(len(l.source) - len(trimmed))
			continue
		}
		if err := l.element(rest); err != nil {
			return err
		}
	}
	return nil
}

// element reads one number, name, string or operator.
func (l *lexer) element(rest string) error {
	if kind, size := scanNumber(rest); size > 0 {
		if kind == tokenFloat && l.pos > 0 && l.source[l.pos-1] == '.' {
			kind, size = tokenInteger, scanInteger(rest)
		}
		l.emit(kind, strings.ReplaceAll(rest[:size], "_", ""))
		l.advance(l.pos + size)
		return nil
	}
	if size := scanName(rest); size > 0 {
		l.emit(tokenName, rest[:size])
		l.advance(l.pos + size)
		return nil
	}
	if rest[0] == '\'' || rest[0] == '"' {
		return l.quoted(rest)
	}
	size := scanOperator(rest)
	if size == 0 {
		c, _ := utf8.DecodeRuneInString(rest)
		return l.failf("unexpected char %s at %d", quote(string(c)), l.pos)
	}
	if err := l.balance(rest[0]); err != nil {
		return err
	}
	l.emit(tokenOperator, rest[:size])
	l.advance(l.pos + size)
	return nil
}

// balance keeps the stack of open brackets.
func (l *lexer) balance(c byte) error {
	switch c {
	case '(':
		l.brackets = append(l.brackets, ')')
	case '[':
		l.brackets = append(l.brackets, ']')
	case '{':
		l.brackets = append(l.brackets, '}')
	case ')', ']', '}':
		if len(l.brackets) == 0 {
			return l.failf("unexpected '%c'", c)
		}
		want := l.brackets[len(l.brackets)-1]
		l.brackets = l.brackets[:len(l.brackets)-1]
		if want != c {
			return l.failf("unexpected '%c', expected '%c'", c, want)
		}
	}
	return nil
}

func (l *lexer) quoted(rest string) error {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			text, err := unescape(rest[1:i])
			if err != nil {
				return l.failf("%v", err)
			}
			l.emit(tokenString, text)
			l.advance(l.pos + i + 1)
			return nil
		}
	}
	return l.failf("unexpected char %s at %d", quote(rest[:1]), l.pos)
}
