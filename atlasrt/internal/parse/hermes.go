package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/grammar"

// hermes reads calls of the format that Hermes-2-Pro began and Qwen2.5 and Qwen3 use, behind the opening mark:
//
//	<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
func (s *scanner) hermes(int) { s.jsonCalls(false, s.mark("</tool_call>")) }

func hermesCalls() writing {
	w := bareCalls("arguments", "\n")
	object := w.call
	w.around = nil
	w.call = func(name string, arguments grammar.Spec) grammar.Spec {
		return sequence(control("<tool_call>"), literal("\n"), object(name, arguments), literal("\n"), control("</tool_call>"))
	}
	return w
}
