package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/grammar"

// Reasoning is how a family marks thoughts.
type Reasoning struct {
	Name  string // of the format
	Open  string // what begins them; may be a control token of a tokenizer
	Close string // what ends them; may be one, too
	word  string // text that belongs to the opening mark, behind it
}

// reasonings are the formats of thoughts that are known.
func reasonings() []Reasoning {
	return []Reasoning{
		{Name: "think", Open: "<think>", Close: "</think>"},                       // Qwen, DeepSeek-R1, MiniMax-M2, Nemotron-3
		{Name: "mistral", Open: "[THINK]", Close: "[/THINK]"},                     // Mistral-Small-4, Magistral, Ministral-3
		{Name: "gemma", Open: "<|channel>", Close: "<channel|>", word: "thought"}, // Gemma-4
	}
}

// FindReasoning is the format of a name; nil where there is none.
func FindReasoning(name string) *Reasoning {
	for _, r := range reasonings() {
		if r.Name == name {
			return &r
		}
	}
	return nil
}

// ReasoningFormats are the names that FindReasoning knows.
func ReasoningFormats() (names []string) {
	for _, r := range reasonings() {
		names = append(names, r.Name)
	}
	return names
}

// opening is the whole mark that begins thoughts. The line end that may follow belongs to no thought.
func (s *scanner) opening() string { return s.mark(s.config.Reasoning.Open) + s.config.Reasoning.word }

// think reads the thoughts that an answer begins with. A model may also write the opening mark that its prompt ended with.
func (s *scanner) think() {
	s.record()
	s.space()
	if s.take(s.opening()) || s.config.Thinking {
		s.recorded()
		s.thoughts()
		return
	}
	s.out.text(s.recorded())
}

// thoughts reads to the closing mark.
func (s *scanner) thoughts() {
	s.out.part(lineEnds)
	s.out.thinking = true
	if s.until([]string{s.mark(s.config.Reasoning.Close)}, s.out.thought) >= 0 {
		s.out.part(lineEnds)
		s.out.thinking = false
	}
}

// Before is what an answer must be that has a form behind its thoughts, which are free. They must come where the prompt ends within them
// (begun), and may where the model may begin them. Where thoughts are not marked, nil, there are none.
func (r *Reasoning) Before(form grammar.Spec, begun, may bool) grammar.Spec {
	if r == nil || !begun && !may {
		return form
	}
	lines := grammar.Spec{Kind: grammar.Repeat, Parts: []grammar.Spec{literal("\n")}, Max: mostLines}
	thoughts := sequence(grammar.Spec{Kind: grammar.Free, Words: []string{r.Close}}, control(r.Close), lines, form)
	if begun {
		return thoughts
	}
	return either(form, sequence(control(r.Open), literal(r.word), thoughts))
}

// mostLines is how many line ends templates write behind thoughts, at most.
const mostLines = 2
