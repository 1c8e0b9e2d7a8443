package parse

import (
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// Tools is how a family writes calls.
type Tools struct {
	Name  string   // of the format
	Marks []string // that may be control tokens of a tokenizer
	opens []string // what begins a call, or several
	bare  bool     // an answer may also begin with calls in JSON that no mark announces
	read  func(s *scanner, open int)

	writings []writing // those of the models that use the format
}

// formats are the ways to write calls that are known.
func formats() []Tools {
	return []Tools{
		{Name: "hermes", Marks: []string{"<tool_call>", "</tool_call>"}, opens: []string{"<tool_call>"}, read: (*scanner).hermes, writings: []writing{hermesCalls()}},
		{Name: "qwen3_coder", Marks: []string{"<tool_call>", "</tool_call>"}, opens: []string{"<tool_call>", "<function="}, read: (*scanner).qwen, writings: []writing{qwenCalls()}},
		{Name: "nemotron", Marks: []string{"<tool_call>", "</tool_call>"}, opens: []string{"<tool_call>", "<function="}, read: (*scanner).qwen, writings: []writing{qwenCalls()}},
		{Name: "minimax", Marks: []string{"<minimax:tool_call>", "</minimax:tool_call>"}, opens: []string{"<minimax:tool_call>", `<invoke name="`}, read: (*scanner).minimax, writings: []writing{minimaxCalls()}},
		{Name: "mistral", Marks: []string{"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}, opens: []string{"[TOOL_CALLS]"}, read: (*scanner).mistral, writings: mistralCalls()},
		{Name: "gemma4", Marks: []string{"<|tool_call>", "<tool_call|>", `<|"|>`}, opens: []string{"<|tool_call>"}, read: (*scanner).gemma, writings: []writing{gemmaCalls()}},
		{Name: "llama3_json", Marks: []string{"<|python_tag|>"}, opens: []string{"<|python_tag|>"}, bare: true, read: (*scanner).python, writings: []writing{bareCalls("parameters", "; ")}},
		{Name: "json", bare: true, writings: []writing{bareCalls("arguments", "\n")}},
	}
}

// FindTools is the format of a name; nil where there is none.
func FindTools(name string) *Tools {
	for _, f := range formats() {
		if f.Name == name {
			return &f
		}
	}
	return nil
}

// ToolFormats are the names that FindTools knows.
func ToolFormats() (names []string) {
	for _, f := range formats() {
		names = append(names, f.Name)
	}
	return names
}

// What follows is for the formats. Since the mark that began a call the reader records. begin ends that for a call that may be
// made; of any other one, all up to conclude comes back as text.

// begin begins a call, now that its name is known.
func (s *scanner) begin(name string) {
	for i, t := range s.config.Declared {
		if t.Name == name {
			s.tool = &s.config.Declared[i]
		}
	}
	if s.tool == nil && s.config.AnyTool && name != "" {
		s.tool = &chat.Tool{Name: name}
	}
	if s.known() {
		s.recorded()
		s.out.call(name)
	}
}

// known tells whether a call that may be made goes on.
func (s *scanner) known() bool { return s.tool != nil }

// argue takes a piece of the arguments of a call that was begun.
func (s *scanner) argue(text string) {
	if s.known() {
		s.out.arguments(text)
	}
}

// conclude ends a call, or what looked like one. whole tells that nothing of it is missing.
func (s *scanner) conclude(whole bool) {
	if !s.known() {
		s.out.text(s.recorded())
		return
	}
	if s.tool = nil; whole && s.out.empty {
		s.out.arguments("{}")
	}
	s.out.part(blanks)
	s.out.over = s.config.OneCall
}

// broken concludes what does not go on as a call does. Where its name was given, what is left up to the mark are arguments as they
// were written.
func (s *scanner) broken(ends ...string) {
	if s.known() {
		s.to(s.argue, ends...)
	}
	s.conclude(false)
}

// closed concludes a whole call and reads the mark behind it.
func (s *scanner) closed(end string) {
	called := s.known()
	s.conclude(true)
	s.record()
	s.leave(called, end)
}

// leave reads the mark that ends one call or several, which may be missing. What was recorded is what stands behind the last one;
// called tells that it was a call. Brackets too many are left out then, all else is text.
func (s *scanner) leave(called bool, ends ...string) {
	s.space()
	ended := slices.ContainsFunc(ends, s.take)
	between := s.recorded()
	switch {
	case !called:
		s.out.text(between)
		return
	case ended || s.endsIn(ends):
		return
	}
	solid := false
	hand := func(text string) {
		if !solid {
			text = strings.TrimLeft(text, blanks+"}]")
			solid = text != ""
		}
		s.out.text(text)
	}
	hand(between)
	if len(ends) > 0 && s.to(hand, ends...) {
		s.out.part(blanks)
	}
}

// endsIn tells whether the answer ends within one of some marks, and reads what there is of it.
func (s *scanner) endsIn(marks []string) bool {
	rest := s.text[s.at:]
	begins := func(mark string) bool { return len(rest) < len(mark) && string(rest) == mark[:len(rest)] }
	if !s.ended || len(rest) == 0 || !slices.ContainsFunc(marks, begins) {
		return false
	}
	s.at = len(s.text)
	return true
}

// to reads to one of the marks that end calls, and past it, or to one that begins another. It tells whether there was an end.
func (s *scanner) to(hand func(string), ends ...string) bool {
	marks := append(slices.Clip(ends), s.opens...)
	which := s.find(marks, hand)
	if which < 0 || which >= len(ends) {
		return false
	}
	return s.take(marks[which])
}
