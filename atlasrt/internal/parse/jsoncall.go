package parse

// jsonCalls reads calls as JSON objects: one, several that commas, semicolons or white space part, or a list of them. Then comes the
// mark that ends them, if there is one. bare says that no mark announced them: what is no call shall be text soon.
func (s *scanner) jsonCalls(bare bool, ends ...string) {
	s.space()
	list := s.take("[")
	for {
		if !s.jsonCall(&jsonCall{bare: bare}, false) {
			s.broken(ends...)
			return
		}
		called := s.known()
		s.conclude(true)
		s.record()
		s.space()
		if s.take(",") || s.take(";") {
			s.space()
		}
		if s.peek() == '{' {
			continue
		}
		if list {
			s.take("]")
		}
		s.leave(called, ends...)
		return
	}
}

// jsonCall is what is known of a call that is a JSON object.
type jsonCall struct {
	bare   bool
	named  bool
	argued bool
	kept   []byte // arguments that came before the name
}

// jsonCall reads a call that is a JSON object with the name of a function and its arguments, in any order; false: it is not whole.
// What else the object has is left out. within is set in an object that is itself the function of such an object.
func (s *scanner) jsonCall(c *jsonCall, within bool) (whole bool) {
	s.space()
	if !s.take("{") {
		return false
	}
	for {
		if s.known() {
			s.record()
		}
		if !s.member(c, within) {
			return s.lost()
		}
		s.space()
		if s.take("}") {
			s.forget()
			return true
		}
		if !s.take(",") {
			return s.lost()
		}
	}
}

// member reads a key of a call and its value.
func (s *scanner) member(c *jsonCall, within bool) bool {
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
	case key == "name" && !c.named:
		name, ok := s.word()
		if !ok {
			return false
		}
		c.named = true
		s.begin(name)
		s.argue(string(c.kept))
		return s.known() || !c.bare
	case key == "function" && !within && !c.named && s.peek() == '{': // as in the OpenAI API
		return s.jsonCall(c, true)
	case (key == "arguments" || key == "parameters") && !c.argued:
		c.argued = true
		s.forget()
		return s.arguments(c)
	case c.bare && !c.named && key != "type" && key != "id":
		return false
	}
	_, ok = s.whole()
	return ok
}

// forget ends the record of a member of a call that was begun.
func (s *scanner) forget() {
	if s.known() {
		s.recorded()
	}
}

// lost gives what was read of a broken member of a call as arguments: but not where the answer ends in it, so that arguments which
// are cut are a beginning of whole ones.
func (s *scanner) lost() (whole bool) {
	if s.known() {
		if text := s.recorded(); s.has(1) {
			s.argue(text)
		}
	}
	return false
}

// arguments reads the arguments of a call: an object, or its text as a string. Where there is no name yet they are kept.
func (s *scanner) arguments(c *jsonCall) bool {
	hand := s.argue
	if !s.known() {
		hand = func(text string) { c.kept = append(c.kept, text...) }
	}
	if first := s.peek(); first != '"' && first != 'n' {
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
