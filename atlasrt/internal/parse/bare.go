package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/grammar"

// bare reads calls that an answer begins with and that no mark announces, as Llama-3 writes them:
//
//	{"name": "f", "parameters": {"x": 1}}; {"name": "g", "parameters": {}}
//
// Where the model may call f, its answer cannot begin with such an object and mean it as text.
func (s *scanner) bare() {
	s.record()
	s.space()
	if c := s.peek(); c == '{' || c == '[' {
		s.jsonCalls(true)
		return
	}
	s.out.text(s.recorded())
}

// python reads calls behind Llama-3's mark for code. What is no such call is text: also a call of a tool that Llama brings along,
// which is written as code.
func (s *scanner) python(int) { s.jsonCalls(true) }

// bareCalls are objects with arguments under a key.
func bareCalls(key, joint string) writing {
	return writing{
		call: func(name string, arguments grammar.Spec) grammar.Spec {
			return sequence(literal(`{"name": `+quoted(name)+`, "`+key+`": `), arguments, literal("}"))
		},
		joint: joint, around: func(calls grammar.Spec) grammar.Spec { return calls }, notation: grammar.Spaced, free: grammar.Flexible,
	}
}
