// Package parse splits what a model writes into its thoughts, its text and its calls of tools.
//
// An answer is read by a program that looks as if the whole text were there (reader); it waits where more must come. So the
// events of an answer are a function of its tokens: no way of cutting it can change what is found. Nothing that the model
// wrote is lost: what looks like a call and is none comes back as text, and arguments come back as they were written.
//
// A format of calls is a file, whose method of scanner reads what follows the mark that begins a call, and a line of formats.
// That method calls begin when it knows the name, argue for pieces of the arguments, and one of conclude, closed and broken in the
// end. Its tests are a line of corpora with records of what models wrote, and one of writings with a call to fill in.
//
//	format       file         written as
//	hermes       hermes.go    <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
//	qwen3_coder  xml.go       <tool_call><function=f><parameter=x>1</parameter></function></tool_call>
//	nemotron     xml.go       as qwen3_coder
//	minimax      xml.go       <minimax:tool_call><invoke name="f"><parameter name="x">1</parameter></invoke></minimax:tool_call>
//	mistral      mistral.go   [TOOL_CALLS]f[ARGS]{"x": 1}
//	gemma4       gemma.go     <|tool_call>call:f{x:1}<tool_call|>
//	llama3_json  bare.go      {"name": "f", "parameters": {"x": 1}} at the start of the answer, or behind <|python_tag|>
//	json         bare.go      {"name": "f", "arguments": {"x": 1}} at the start of the answer
//
// The package is pure, and its time is linear in the text.
package parse

import (
	"slices"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// Config says how an answer is read.
type Config struct {
	Reasoning *Reasoning  // how thoughts are marked; nil: they are not split off
	Thinking  bool        // the prompt ended within thoughts
	Tools     *Tools      // how calls are written; nil: calls are not looked for
	Declared  []chat.Tool // that may be called: what calls another is text
	AnyTool   bool        // whatever is called may be
	OneCall   bool        // the answer is over after its first call

	// Control tells whether a text is a control token of the tokenizer; nil: none is. Such a mark counts only where the model gave
	// that token, and others where the model spelled them, in whatever tokens.
	Control func(text string) bool
}

// Parser reads one answer. One goroutine may use it, and must call Close.
type Parser struct {
	feed *feed
	out  output
}

// New makes a parser at the beginning of an answer.
func New(c Config) *Parser {
	p := &Parser{}
	p.out.thinking = c.Thinking && c.Reasoning != nil
	s := &scanner{out: &p.out, config: c, controls: map[string]string{}}
	for _, control := range c.Controls() {
		s.controls[control] = controlBegin + control + controlEnd
	}
	if c.Tools != nil {
		for _, open := range c.Tools.opens {
			s.opens = append(s.opens, s.mark(open))
		}
	}
	p.feed = newFeed(func(r *reader) {
		s.reader = r
		s.answer()
	})
	return p
}

// Controls are the texts of control tokens that mean something to the parser of a configuration: a caller gives them to Control
// and not to Push.
func (c *Config) Controls() []string {
	var controls []string
	for _, mark := range c.marks() {
		if c.isControl(mark) {
			controls = append(controls, mark)
		}
	}
	return controls
}

func (c *Config) isControl(text string) bool { return c.Control != nil && c.Control(text) }

func (c *Config) marks() (marks []string) {
	if c.Reasoning != nil {
		marks = append(marks, c.Reasoning.Open, c.Reasoning.Close)
	}
	if c.Tools != nil {
		marks = append(marks, c.Tools.Marks...)
	}
	return marks
}

// Push takes text, which must be valid UTF-8. The events are those that became certain by it; they are valid until the next
// call.
func (p *Parser) Push(text string) []chat.Event { return p.take(text) }

// Control takes a control token.
func (p *Parser) Control(text string) []chat.Event {
	return p.take(controlBegin + text + controlEnd)
}

func (p *Parser) take(text string) []chat.Event {
	if text != "" && !p.out.over {
		p.feed.push(text)
	}
	return p.out.take()
}

// End gives the events that become certain as nothing more comes. whole tells that the model ended its turn there, and nothing cut it:
// a call without arguments then has an empty object of them.
func (p *Parser) End(whole bool) []chat.Event {
	p.feed.end()
	p.out.release()
	if whole && p.out.empty {
		p.out.arguments("{}")
	}
	return p.out.take()
}

// Close ends the parser, wherever it is. It may be called again.
func (p *Parser) Close() {
	p.out.over = true // what is not yet certain is not said
	p.feed.stop()
}

// Thinking tells whether the model is within its thoughts.
func (p *Parser) Thinking() bool { return p.out.thinking }

// Calls is how many calls have begun.
func (p *Parser) Calls() int { return p.out.calls }

// Over tells whether the answer is over though the model goes on: after the first call, where there may be one only.
func (p *Parser) Over() bool { return p.out.over }

// Steps is how many bytes were looked at, each as often as it was: tests hold it against the length of an answer.
func (p *Parser) Steps() int { return p.feed.reader.steps }

// scanner is the reader of an answer with what is known about it. The files of this package are its methods: one for each
// way to write something.
type scanner struct {
	*reader
	out      *output
	config   Config
	controls map[string]string // marks that are control tokens, as the reader has them
	opens    []string          // marks that begin calls, likewise
	tool     *chat.Tool        // whose call was begun and goes on; nil: none
}

// answer reads a whole answer.
func (s *scanner) answer() {
	if s.config.Reasoning != nil {
		s.think()
	}
	if s.config.Tools != nil && s.config.Tools.bare {
		s.bare()
	}
	for !s.out.over && s.reply() {
	}
}

// reply reads text up to what begins a call or thoughts, and that; false: the answer ended.
func (s *scanner) reply() bool {
	marks, thoughts := s.opens, -1
	if r := s.config.Reasoning; r != nil && s.config.isControl(r.Open) {
		thoughts = len(marks)
		marks = append(slices.Clip(marks), s.opening())
	}
	switch which := s.find(marks, s.out.text); which {
	case -1:
		return false
	case thoughts:
		s.take(marks[which])
		s.thoughts()
	default:
		s.record()
		s.take(marks[which])
		s.config.Tools.read(s, which)
	}
	return true
}

// mark is a mark as the reader has it: a control token where the tokenizer has one of this text.
func (s *scanner) mark(text string) string {
	if control, ok := s.controls[text]; ok {
		return control
	}
	return text
}
