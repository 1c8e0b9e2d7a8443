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
	read  func(s *scanner, open int)
}

// formats are the ways to write calls that are known.
func formats() []Tools {
	return []Tools{
		{Name: "hermes", Marks: []string{"<tool_call>", "</tool_call>"}, opens: []string{"<tool_call>"}, read: (*scanner).hermes},
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

// begin begins a call, now that its name is known. Where the request has no such tool, what is read remains text.
func (s *scanner) begin(name string) {
	s.known = s.config.AnyTool || slices.ContainsFunc(s.config.Declared, func(t chat.Tool) bool { return t.Name == name })
	if !s.known {
		return
	}
	s.recorded()
	s.out.call(name)
}

// argue takes a piece of the arguments of a call that was begun.
func (s *scanner) argue(text string) {
	if s.known {
		s.out.arguments(text)
	}
}

// conclude ends what began with an opening mark: a call, or else text. whole tells that nothing of it is missing.
func (s *scanner) conclude(whole bool) {
	if !s.known {
		s.out.text(s.recorded())
		return
	}
	if s.known = false; whole && s.out.empty {
		s.out.arguments("{}")
	}
	s.out.part()
	s.out.over = s.config.OneCall
}

// closing reads to the mark that closes a call, and concludes it. A call that lacks the mark ends where the next one begins.
// What stands between a whole call and the mark is text; where a call is broken it belongs to the arguments.
func (s *scanner) closing(mark string, whole bool) {
	mark = s.mark(mark)
	switch {
	case s.known && whole:
		s.space()
		if s.take(mark) {
			s.conclude(true)
			return
		}
		s.conclude(true)
		s.beyond(mark)
	case s.known:
		s.to(mark, s.argue)
		s.conclude(false)
	default:
		if whole {
			s.space()
			s.take(mark)
		}
		s.conclude(whole)
	}
}

// beyond reads what stands between a call and its closing mark: brackets too many are left out, all else is text.
func (s *scanner) beyond(mark string) {
	solid := false
	var before []byte
	s.to(mark, func(text string) {
		before = append(before, text...)
		if solid = solid || strings.Trim(text, blanks+"}]") != ""; solid {
			s.out.text(string(before))
			before = before[:0]
		}
	})
	s.out.part()
}

// to reads to a closing mark, and past it, or to what begins another call.
func (s *scanner) to(mark string, hand func(string)) {
	marks := []string{mark}
	for _, open := range s.config.Tools.opens {
		marks = append(marks, s.mark(open))
	}
	if which := s.until(marks, hand); which > 0 {
		s.at -= len(marks[which])
	}
}

// open begins to read what may be a call, behind its opening mark.
func (s *scanner) open(mark string) {
	s.record()
	s.kept -= len(mark)
}
