package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/grammar"

// mistral reads what follows Mistral's mark: one call, or a list of calls as Mistral-Nemo and Mistral-Small-2409 and -2501 write it.
//
//	[TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}
//	[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}, "id": "123456789"}]
func (s *scanner) mistral(int) {
	s.space()
	if c := s.peek(); c == '[' || c == '{' {
		s.jsonCalls(false)
		return
	}
	name := s.bareword()
	s.space()
	if s.take(s.mark("[CALL_ID]")) {
		s.space()
		s.bareword()
		s.space()
	}
	if !s.take(s.mark("[ARGS]")) && s.peek() != '{' {
		s.conclude(false)
		return
	}
	s.begin(name)
	s.space()
	for _, open := range s.opens {
		if s.sees(0, open) { // no arguments at all
			s.conclude(true)
			return
		}
	}
	if c := s.peek(); (c == '{' || c == '"') && s.arguments(&jsonCall{}) {
		s.conclude(true)
		return
	}
	s.broken()
}

// bareword reads a name or an identifier, which end at white space, a bracket or a control token.
func (s *scanner) bareword() string {
	var word []byte
	for {
		c := s.peek()
		if c <= ' ' || c == '[' || c == '{' || c == controlBegin[0] {
			return string(word)
		}
		word = append(word, c)
		s.at++
	}
}

// mistralCalls are those of both kinds. Models whose template does not say an id do not give one.
func mistralCalls() []writing {
	id := grammar.Spec{Kind: grammar.Regex, Text: "[a-zA-Z0-9]{9}"}
	list := bareCalls("arguments", ", ")
	list.call = func(name string, arguments grammar.Spec) grammar.Spec {
		return sequence(literal(`{"name": `+quoted(name)+`, "arguments": `), arguments, literal(`, "id": "`), id, literal(`"}`))
	}
	list.around = func(calls grammar.Spec) grammar.Spec {
		return sequence(control("[TOOL_CALLS]"), literal("["), calls, literal("]"))
	}
	return []writing{list, {
		call: func(name string, arguments grammar.Spec) grammar.Spec {
			return sequence(control("[TOOL_CALLS]"), literal(name), optional(sequence(control("[CALL_ID]"), id)), control("[ARGS]"), arguments)
		},
		notation: grammar.Spaced, free: grammar.Flexible,
	}}
}
