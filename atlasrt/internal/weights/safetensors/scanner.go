package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// scanner reads the small part of JSON that headers and indices are made of: objects, strings and arrays of integers. A
// large checkpoint has some 150000 tensors, for which encoding/json takes seconds.
type scanner struct {
	text     []byte
	position int
}

// next skips white space and gives the next byte without taking it; 0 at the end.
func (s *scanner) next() byte {
	for ; s.position < len(s.text); s.position++ {
		switch c := s.text[s.position]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take takes the next byte if it is the given one.
func (s *scanner) take(want byte) bool {
	if s.next() != want || s.position >= len(s.text) {
		return false
	}
	s.position++
	return true
}

func (s *scanner) expect(want byte) error {
	if s.take(want) {
		return nil
	}
	return s.wanted(strconv.QuoteRune(rune(want)))
}

// wanted is the error of finding something else.
func (s *scanner) wanted(what string) error {
	if s.next(); s.position >= len(s.text) {
		return fmt.Errorf("the text ends, wanted %s", what)
	}
	return fmt.Errorf("found %.20q, wanted %s", s.text[s.position:min(s.position+20, len(s.text))], what)
}

// end checks that only white space is left.
func (s *scanner) end() error {
	if s.next(); s.position < len(s.text) {
		return errors.New("text after the closing brace")
	}
	return nil
}

// object calls member for each key of an object; member reads the value.
func (s *scanner) object(member func(key string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.take('}') {
		return nil
	}
	for {
		key, err := s.string()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if err := s.expect(','); err != nil {
			return err
		}
	}
}

// integers reads an array of at most limit integers that are not negative. An empty array gives an empty slice, not nil.
func (s *scanner) integers(limit int) ([]int64, error) {
	if err := s.expect('['); err != nil {
		return nil, err
	}
	list := []int64{}
	if s.take(']') {
		return list, nil
	}
	for {
		if len(list) == limit {
			if limit == maxDimensions {
				return nil, ErrRank
			}
			return nil, fmt.Errorf("an array of more than %d", limit)
		}
		n, err := s.integer()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if s.take(']') {
			return list, nil
		}
		if err := s.expect(','); err != nil {
			return nil, err
		}
	}
}

func (s *scanner) integer() (int64, error) {
	const want = "an integer from 0 to 2^63-1"
	s.next()
	start := s.position
	for s.position < len(s.text) && s.text[s.position] >= '0' && s.text[s.position] <= '9' {
		s.position++
	}
	digits := s.text[start:s.position]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		s.position = start
		return 0, s.wanted(want)
	}
	return n, nil
}

func (s *scanner) string() (string, error) {
	if !s.take('"') {
		return "", s.wanted("a string")
	}
	start, escaped := s.position, false
	for ; s.position < len(s.text); s.position++ {
		switch c := s.text[s.position]; {
		case c == '\\':
			escaped = true
			s.position++
		case c < ' ':
			return "", errors.New("a control character in a string")
		case c == '"':
			s.position++
			if !escaped {
				return string(s.text[start : s.position-1]), nil
			}
			var text string
			err := json.Unmarshal(s.text[start-1:s.position], &text)
			return text, err
		}
	}
	return "", errors.New("a string without end")
}
