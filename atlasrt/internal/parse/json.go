package parse

import (
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// value reads one JSON value and hands it over as it is written, in pieces. It does not judge what it need not: false is a value that
// ends before it is whole, or has something outside of its strings that no JSON has; what was read before has been handed over.
func (s *scanner) value(hand func(string)) bool {
	v := jsonValue{}
	for {
		rest := s.text[s.at:]
		n, end := v.scan(rest)
		s.steps += n
		s.hand(n, hand)
		switch {
		case end == valueWhole:
			return true
		case end == valueBroken || s.ended:
			return v.isScalar() && end != valueBroken
		}
		s.wait()
	}
}

// jsonValue finds the end of a JSON value.
type jsonValue struct {
	open    []byte // closing brackets that must come, the last one first
	text    bool   // within a string
	escaped bool   // behind its backslash
	begun   bool
}

type valueEnd uint8

const (
	valueGoesOn valueEnd = iota
	valueWhole
	valueBroken
)

// scan takes text and tells how much of it belongs to the value.
func (v *jsonValue) scan(text []byte) (n int, end valueEnd) {
	for i, c := range text {
		if v.text {
			switch {
			case c == controlBegin[0]:
				return i, valueBroken
			case v.escaped:
				v.escaped = false
			case c == '\\':
				v.escaped = true
			case c == '"':
				if v.text = false; len(v.open) == 0 {
					return i + 1, valueWhole
				}
			}
			continue
		}
		switch c {
		case '"':
			if v.begun && len(v.open) == 0 {
				return i, valueWhole
			}
			v.text = true
		case '{', '[':
			if v.begun && len(v.open) == 0 {
				return i, valueWhole
			}
			v.open = append(v.open, c+2) // the closing bracket, in ASCII
		case '}', ']':
			last := len(v.open) - 1
			if last < 0 { // of what is around the value
				return i, ended(v.begun)
			}
			if v.open[last] != c {
				return i, valueBroken
			}
			if v.open = v.open[:last]; last == 0 {
				return i + 1, valueWhole
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if len(v.open) == 0 {
				return i, ended(v.begun)
			}
		default:
			if !isWord(c) {
				return i, ended(v.isScalar())
			}
		}
		v.begun = true
	}
	return len(text), valueGoesOn
}

func ended(whole bool) valueEnd {
	if whole {
		return valueWhole
	}
	return valueBroken
}

// isScalar tells whether the value is a number or a word, whose end is only seen from what follows.
func (v *jsonValue) isScalar() bool { return v.begun && !v.text && len(v.open) == 0 }

// isWord tells whether a byte may be in a number, or in true, false and null.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// whole reads one JSON value and gives its text.
func (s *scanner) whole() (text string, ok bool) {
	var b []byte
	ok = s.value(func(piece string) { b = append(b, piece...) })
	return string(b), ok
}

// word reads a JSON string and gives what it means.
func (s *scanner) word() (text string, ok bool) {
	if s.peek() != '"' {
		return "", false
	}
	written, ok := s.whole()
	if !ok {
		return "", false
	}
	return meaning(written)
}

// meaning is what a JSON string says.
func meaning(written string) (text string, ok bool) {
	v, err := jsontree.Decode([]byte(written), jsontree.Limits{})
	if err != nil {
		return "", false
	}
	said, ok := v.(jsontree.String)
	return string(said), ok
}
