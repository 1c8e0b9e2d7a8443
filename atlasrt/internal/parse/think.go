package parse

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
