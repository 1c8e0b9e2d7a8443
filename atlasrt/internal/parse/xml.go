package parse

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/kind"
)

// markup is a way to write calls with tags.
type markup struct {
	open, close         string // around one call or several
	call, callEnd       string // a function's name comes behind call
	parameter, valueEnd string // a parameter's name comes behind parameter
	nameEnd             string // what ends both kinds of names
	lines               bool   // a value stands on lines of its own, whose line ends are none of it
}

// qwen reads calls as Qwen3-Coder, Qwen3.5 and Nemotron-3 write them, from either of the first two tags:
//
//	<tool_call>
//	<function=f>
//	<parameter=x>
//	1
//	</parameter>
//	</function>
//	</tool_call>
func (s *scanner) qwen(open int) {
	s.tagged(&markup{
		open: s.mark("<tool_call>"), close: s.mark("</tool_call>"), call: "<function=", callEnd: "</function>",
		parameter: "<parameter=", valueEnd: "</parameter>", nameEnd: ">", lines: true,
	}, open == 1)
}

// minimax reads calls as MiniMax-M2 writes them:
//
//	<minimax:tool_call>
//	<invoke name="f">
//	<parameter name="x">1</parameter>
//	</invoke>
//	</minimax:tool_call>
func (s *scanner) minimax(open int) {
	s.tagged(&markup{
		open: s.mark("<minimax:tool_call>"), close: s.mark("</minimax:tool_call>"), call: `<invoke name="`, callEnd: "</invoke>",
		parameter: `<parameter name="`, valueEnd: "</parameter>", nameEnd: `">`,
	}, open == 1)
}

// tagged reads one call, and the tag behind it. Further calls in the same tags begin with a mark of their own. within is set behind
// the tag of a call, which may lack the one around it.
func (s *scanner) tagged(m *markup, within bool) {
	if !within {
		if s.space(); !s.take(m.call) {
			s.conclude(false)
			return
		}
	}
	name, ok := s.tagName(m)
	if !ok {
		s.conclude(false)
		return
	}
	s.begin(name)
	whole := s.parameters(m)
	if called := s.known(); !whole {
		s.broken(m.callEnd, m.close)
		if !called {
			return
		}
	}
	s.space()
	s.take(m.close)
	if whole {
		s.conclude(true)
	}
}

// tagName reads the name in a tag, and the tag's end.
func (s *scanner) tagName(m *markup) (name string, ok bool) {
	var b []byte
	ends := []string{m.nameEnd, "\n", "<", controlBegin}
	ok = s.find(ends, func(text string) { b = append(b, text...) }) == 0 && s.take(m.nameEnd)
	return strings.TrimSpace(string(b)), ok
}

// parameters reads the parameters of a call and its closing tag, which may be missing where the next tag shows that the call is
// over; false: the call does not end.
func (s *scanner) parameters(m *markup) (whole bool) {
	separator := "{"
	for {
		s.space()
		switch {
		case s.take(m.parameter):
			name, ok := s.tagName(m)
			if !ok && !s.has(1) {
				s.argue(separator + `"` + escaped(name))
				return false
			}
			if !ok {
				s.argue(m.parameter + name)
				return false
			}
			s.argue(separator + quoted(name) + ": ")
			separator = ", "
			if !s.parameterValue(m, s.kinds(name)) {
				return false
			}
		case s.take(m.callEnd), s.sees(0, m.close), s.sees(0, m.open), s.sees(0, m.call):
			if separator != "{" {
				s.argue("}")
			}
			return true
		default:
			return false
		}
	}
}

// parameterValue reads a value and what ends it. A tag within the value is a part of it: closing tags count where a tag follows that
// may follow them, and others on a line of their own.
func (s *scanner) parameterValue(m *markup, kinds kind.Set) (whole bool) {
	lines := m.lines && s.take("\n")
	v := newArgument(s.argue, kinds, lines)
	ends := []string{m.valueEnd, m.parameter, m.callEnd, m.close, m.open}
	for {
		which := s.find(ends, v.add)
		if which < 0 {
			v.cut()
			return false
		}
		end := ends[which]
		over := !lines || v.atLine()
		switch end {
		case m.valueEnd:
			over = s.follows(end, m.parameter, m.callEnd, m.close, m.open, m.call)
		case m.callEnd:
			over = over && s.follows(end, m.close, m.open, m.call)
		case m.close, m.open:
			over = end[0] == controlBegin[0] || over && s.follows(end, m.open, m.call)
		}
		if over {
			v.end()
			s.take(m.valueEnd)
			return true
		}
		s.take(end)
		v.add(end)
	}
}

// follows tells whether what comes next is a tag with another one behind it, or with nothing more.
func (s *scanner) follows(tag string, others ...string) bool {
	n := len(tag)
	for isSpace(s.ahead(n)) {
		n++
	}
	if !s.has(n + 1) {
		return true
	}
	return slices.ContainsFunc(others, func(other string) bool { return s.sees(n, other) })
}

// qwenCalls are also Nemotron's, whose calls each end with a line end.
func qwenCalls() writing {
	return writing{
		call: func(name string, arguments grammar.Spec) grammar.Spec {
			return sequence(control("<tool_call>"), literal("\n<function="+name+">\n"), arguments, literal("</function>\n"), control("</tool_call>"))
		},
		joint: "\n", behind: "\n", notation: grammar.QwenXML, free: grammar.QwenXML,
	}
}

func minimaxCalls() writing {
	return writing{
		call: func(name string, arguments grammar.Spec) grammar.Spec {
			return sequence(literal(`<invoke name="`+name+"\">\n"), arguments, literal("</invoke>\n"))
		},
		around: func(calls grammar.Spec) grammar.Spec {
			return sequence(control("<minimax:tool_call>"), literal("\n"), calls, control("</minimax:tool_call>"))
		},
		notation: grammar.MiniMax, free: grammar.MiniMax,
	}
}
