package ebnf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scanner is the text of a grammar that is read from its start to its end. A method that fails panics with an *Error, which read turns into
// an error.
type scanner struct {
	text  string
	at    int // what is read ends here
	depth int // open brackets
}

// read runs a program and gives the error that it fails with.
func read(program func()) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case *Error:
			err = failed
		default:
			panic(failed)
		}
	}()
	program()
	return nil
}

// fail ends the reading at an offset.
func (s *scanner) fail(offset int, format string, args ...any) {
	line, column := place(s.text, offset)
	panic(&Error{line, column, fmt.Sprintf(format, args...)})
}

// valid refuses a text that is no UTF-8.
func (s *scanner) valid() {
	for at, r := range s.text {
		if r == utf8.RuneError && !strings.HasPrefix(s.text[at:], string(utf8.RuneError)) {
			s.fail(at, "the text is no valid UTF-8")
		}
	}
}

// unexpected ends the reading at what comes next.
func (s *scanner) unexpected(want string) {
	if s.at == len(s.text) {
		s.fail(s.at, "the grammar ends where %s must come", want)
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.at:])
	s.fail(s.at, "%q comes where %s must", r, want)
}

// peek is the next byte; 0 at the end.
func (s *scanner) peek() byte { return s.ahead(0) }

// ahead is the byte n bytes on; 0 behind the end.
func (s *scanner) ahead(n int) byte {
	if s.at+n >= len(s.text) {
		return 0
	}
	return s.text[s.at+n]
}

// take reads a literal where it comes next.
func (s *scanner) take(literal string) bool {
	if !strings.HasPrefix(s.text[s.at:], literal) {
		return false
	}
	s.at += len(literal)
	return true
}

// line reads up to the end of a line.
func (s *scanner) line() {
	if n := strings.IndexByte(s.text[s.at:], '\n'); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.text)
	}
}

// lineBegins tells whether nothing but blanks stands before the next byte on its line.
func (s *scanner) lineBegins() bool {
	before := strings.TrimRight(s.text[:s.at], " \t")
	return before == "" || before[len(before)-1] == '\n'
}

// character reads one.
func (s *scanner) character() rune {
	r, size := utf8.DecodeRuneInString(s.text[s.at:])
	s.at += size
	return r
}

// word reads letters, digits and what else belongs to names.
func (s *scanner) word(more string) string {
	from := s.at
	for isWord(s.peek()) || s.peek() != 0 && strings.IndexByte(more, s.peek()) >= 0 {
		s.at++
	}
	return s.text[from:s.at]
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// hex reads a character by its number, of from least to most hexadecimal digits; from is where it began.
func (s *scanner) hex(from, least, most int) rune {
	n := 0
	for n < most && isHex(s.ahead(n)) {
		n++
	}
	if n < least {
		s.at += n
		s.unexpected("a hexadecimal digit")
	}
	value, err := strconv.ParseUint(s.text[s.at:s.at+n], 16, 32)
	if s.at += n; err != nil || !utf8.ValidRune(rune(value)) {
		s.fail(from, "%s is no character of Unicode", s.text[from:s.at])
	}
	return rune(value)
}

// escape reads what follows a backslash; more are bytes that stand for themselves.
func (s *scanner) escape(more string) rune {
	from := s.at - 1
	switch c := s.peek(); {
	case c != 0 && strings.IndexByte(more, c) >= 0:
		s.at++
		return rune(c)
	case s.take("n"):
		return '\n'
	case s.take("r"):
		return '\r'
	case s.take("t"):
		return '\t'
	case s.take("x"):
		return s.hex(from, 2, 2)
	case s.take("u"):
		return s.hex(from, 4, 4)
	case s.take("U"):
		return s.hex(from, 8, 8)
	}
	s.unexpected(`one of n, r, t, xHH, uHHHH, UHHHHHHHH, ` + strings.Join(strings.Split(more, ""), ", ") + " behind a backslash")
	return 0
}

// times reads how often something is repeated.
func (s *scanner) times() int {
	from := s.at
	for isDigit(s.peek()) {
		s.at++
	}
	if from == s.at {
		s.unexpected("a number")
	}
	n, err := strconv.Atoi(s.text[from:s.at])
	if err != nil || n > mostTimes {
		s.fail(from, "a repetition may be of at most %d times, not %.20s", mostTimes, s.text[from:s.at])
	}
	return n
}

// enter goes into a bracket that began at an offset.
func (s *scanner) enter(from int) {
	if s.depth++; s.depth > deepest {
		s.fail(from, "brackets nest more than %d deep", deepest)
	}
}
