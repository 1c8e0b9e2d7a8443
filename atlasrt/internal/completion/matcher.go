package completion

import "strings"

// matcher lets text pass until a stop string appears in it, and holds back what may yet become one.
type matcher struct {
	stops []string
	held  string
	found string // the stop string that came
}

// push takes new text and gives what may be shown. After a stop string was found nothing is.
func (m *matcher) push(text string) string {
	if m.found != "" {
		return ""
	}
	if len(m.stops) == 0 {
		return text
	}
	text = m.held + text
	first := len(text)
	for _, stop := range m.stops {
		if i := strings.Index(text, stop); i >= 0 && (i < first || i == first && len(stop) > len(m.found)) {
			first, m.found = i, stop
		}
	}
	if m.found != "" {
		m.held = ""
		return text[:first]
	}
	hold := 0
	for _, stop := range m.stops {
		for n := min(len(stop)-1, len(text)); n > hold; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				hold = n
			}
		}
	}
	m.held = text[len(text)-hold:]
	return text[:len(text)-hold]
}

// flush gives what was held back and became no stop string.
func (m *matcher) flush() string {
	held := m.held
	m.held = ""
	return held
}
