package parse

// Reasoning is how a family marks thoughts.
type Reasoning struct {
	Name        string // of the format
	Open, Close string // what is written around them
}

// reasonings are the formats of thoughts that are known.
func reasonings() []Reasoning {
	return []Reasoning{
		{"think", "<think>", "</think>"},      // Qwen, DeepSeek-R1, MiniMax-M2, Nemotron-3
		{"mistral", "[THINK]", "[/THINK]"},    // Mistral-Small-4, Magistral
		{"gemma", "<|channel>", "<channel|>"}, // Gemma-4
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

// think reads the thoughts that an answer begins with. A model may also write the opening mark that its prompt ended with.
func (s *scanner) think() {
	open := s.mark(s.config.Reasoning.Open)
	s.record()
	s.space()
	if s.take(open) || s.config.Thinking {
		s.recorded()
		s.thoughts()
		return
	}
	s.out.text(s.recorded())
}

// thoughts reads to the closing mark.
func (s *scanner) thoughts() {
	s.out.part()
	s.out.thinking = true
	if s.until([]string{s.mark(s.config.Reasoning.Close)}, s.out.thought) >= 0 {
		s.out.part()
		s.out.thinking = false
	}
}
