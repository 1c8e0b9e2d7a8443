package parse

// hermes reads a call of the format that Hermes-2-Pro began and Qwen2.5 and Qwen3 use, behind its opening mark:
//
//	<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
func (s *scanner) hermes(int) {
	s.closing("</tool_call>", s.object(false))
}

// object reads a call that is a JSON object with the name of a function and its arguments, in any order; false: it is not whole.
// Within is set in an object that is itself the function of such an object.
func (s *scanner) object(within bool) (whole bool) {
	s.space()
	if !s.take("{") {
		return false
	}
	arguments := "" // that came before the name
	for {
		s.space()
		key, ok := s.word()
		if !ok {
			return false
		}
		if s.space(); !s.take(":") {
			return false
		}
		s.space()
		switch {
		case key == "name" && !s.known:
			name, ok := s.word()
			if !ok {
				return false
			}
			s.begin(name)
			s.argue(arguments)
		case key == "function" && !within && s.peek() == '{': // as in the OpenAI API
			ok = s.object(true)
		case key == "arguments" || key == "parameters":
			ok = s.arguments(&arguments)
		default:
			_, ok = s.whole()
		}
		if !ok {
			return false
		}
		s.space()
		if s.take("}") {
			return true
		}
		if !s.take(",") {
			return false
		}
	}
}

// arguments reads the arguments of a call: an object, or its text as a string. Where there is no name yet they are kept.
func (s *scanner) arguments(kept *string) bool {
	hand := s.argue
	if !s.known {
		hand = func(text string) { *kept += text }
	}
	if c := s.peek(); c != '"' && c != 'n' {
		return s.value(hand)
	}
	written, ok := s.whole()
	if said, isText := meaning(written); isText {
		written = said
	} else if ok && written == "null" {
		written = ""
	}
	hand(written)
	return ok
}
