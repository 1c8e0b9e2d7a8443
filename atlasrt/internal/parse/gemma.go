package parse

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/kind"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// deepest is how far values may nest.
const deepest = 64

// gemma reads a call of Gemma-4 behind its opening mark. Its arguments are much like JSON: keys are bare, and text stands between
// marks, with nothing escaped.
//
//	<|tool_call>call:f{x:<|"|>text<|"|>,n:3,l:[true,null],o:{k:1.5}}<tool_call|>
func (s *scanner) gemma(int) {
	end := s.mark("<tool_call|>")
	if s.gemmaCall() {
		s.closed(end)
	} else {
		s.broken(end)
	}
}

func (s *scanner) gemmaCall() (whole bool) {
	if s.space(); !s.take("call:") {
		return false
	}
	s.space()
	name := s.bareword()
	if s.space(); !s.take("{") {
		return false
	}
	s.begin(name)
	return s.gemmaObject(deepest)
}

// gemmaValue reads a value and hands it over as JSON. It may hold others, to a depth.
func (s *scanner) gemmaValue(depth int) bool {
	s.space()
	switch {
	case depth == 0:
		return false
	case s.take("{"):
		return s.gemmaObject(depth - 1)
	case s.take("["):
		return s.gemmaList(depth - 1)
	case s.peek() == '"': // a model may mistake the format for JSON
		return s.value(s.argue)
	case s.take(s.quote()):
		return s.gemmaText()
	}
	text, whole := s.bareText(",", "}", "]")
	switch {
	case text == "":
		return false
	case whole:
		s.argue(bareValue(text))
	default:
		s.argue(text)
	}
	return whole
}

// gemmaObject reads an object behind its bracket.
func (s *scanner) gemmaObject(depth int) bool {
	s.argue("{")
	for separator := ""; ; separator = ", " {
		if s.space(); s.take("}") {
			s.argue("}")
			return true
		}
		if separator != "" {
			if !s.take(",") {
				return false
			}
			s.space()
		}
		s.argue(separator)
		if !s.gemmaKey() {
			return false
		}
		if s.space(); !s.take(":") {
			return false
		}
		if s.argue(": "); !s.gemmaValue(depth) {
			return false
		}
	}
}

// gemmaKey reads a key: bare, or as text.
func (s *scanner) gemmaKey() bool {
	if s.take(s.quote()) {
		return s.gemmaText()
	}
	if s.peek() == '"' {
		return s.value(s.argue)
	}
	key, whole := s.bareText(":")
	switch {
	case whole:
		s.argue(quoted(key))
	case s.has(1):
		s.argue(key)
	default:
		s.argue(`"` + escaped(key))
	}
	return whole
}

// gemmaList reads a list behind its bracket.
func (s *scanner) gemmaList(depth int) bool {
	s.argue("[")
	for separator := ""; ; separator = ", " {
		if s.space(); s.take("]") {
			s.argue("]")
			return true
		}
		if separator != "" && !s.take(",") {
			return false
		}
		if s.argue(separator); !s.gemmaValue(depth) {
			return false
		}
	}
}

// gemmaText reads text behind its mark: everything up to the same mark.
func (s *scanner) gemmaText() bool {
	s.argue(`"`)
	if s.until([]string{s.quote()}, func(text string) { s.argue(escaped(text)) }) < 0 {
		return false
	}
	s.argue(`"`)
	return true
}

func (s *scanner) quote() string { return s.mark(`<|"|>`) }

// bareText reads what stands without quotes up to one of some ends, which is not read; false: something else comes first.
func (s *scanner) bareText(ends ...string) (text string, whole bool) {
	var b []byte
	marks := append(ends, ",", "{", "}", "[", "]", s.quote(), s.mark("<tool_call|>"), controlBegin)
	which := s.find(marks, func(text string) { b = append(b, text...) })
	return strings.TrimRight(string(b), blanks), which >= 0 && which < len(ends)
}

// bareValue is JSON for what stands without quotes: a number, a word that JSON has or Python has for it, or else text.
func bareValue(text string) string {
	switch text {
	case "None":
		return "null"
	case "True", "False":
		return strings.ToLower(text)
	}
	if v, err := jsontree.Decode([]byte(text), jsontree.Limits{}); err == nil && kind.Of(v) != kind.String {
		return text
	}
	return quoted(text)
}

func gemmaCalls() writing {
	return writing{
		call: func(name string, arguments grammar.Spec) grammar.Spec {
			return sequence(control("<|tool_call>"), literal("call:"+name), arguments, control("<tool_call|>"))
		},
		notation: grammar.Gemma, free: grammar.Gemma,
	}
}
