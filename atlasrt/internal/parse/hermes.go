package parse

// hermes reads calls of the format that Hermes-2-Pro began and Qwen2.5 and Qwen3 use, behind the opening mark:
//
//	<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
func (s *scanner) hermes(int) { s.jsonCalls(false, s.mark("</tool_call>")) }
