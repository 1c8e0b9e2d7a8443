package targets

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/targets/strict"
)

// ParseModel reads a file of the same form from elsewhere, about whatever checkpoint it is given for: it needs no match and no source.
// The error joins what is wrong, by line.
func ParseModel(file, text string) (*Model, error) {
	m := &Model{Name: file, File: file}
	var wrong []strict.Problem
	if m.lines, wrong = strict.Decode(text, m); wrong == nil {
		wrong = m.checkFacts()
	}
	var problems []error
	for _, p := range wrong {
		problems = append(problems, fmt.Errorf("%s:%d: %s", file, p.Line, p))
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	return m, nil
}

// check finds what types alone do not tell.
func (m *Model) check() []strict.Problem {
	var problems []strict.Problem
	report := func(key, format string, args ...any) { problems = append(problems, m.problem(key, format, args...)) }
	if m.Source == "" {
		report("source", "key \"source\" is missing: say where the publisher states these values")
	}
	if len(m.Match.Architectures) == 0 || len(m.Match.Names) == 0 {
		report("match", "keys \"architectures\" and \"names\" of match must list something")
	}
	for _, text := range m.Match.Names {
		r, err := regexp.Compile("^(?:" + text + ")$")
		if err != nil {
			report("match.names", "%v", err)
			continue
		}
		m.names = append(m.names, r)
	}
	if slices.Contains(m.Match.Template, "") {
		report("match.template", "a text of template is empty")
	}
	return append(problems, m.checkFacts()...)
}

func (m *Model) problem(key, format string, args ...any) strict.Problem {
	return strict.Problem{Line: max(1, m.lines.At(key)), Msg: fmt.Sprintf(format, args...)}
}

// checkFacts finds what is wrong with what is said about the model.
func (m *Model) checkFacts() []strict.Problem {
	var problems []strict.Problem
	report := func(key, format string, args ...any) { problems = append(problems, m.problem(key, format, args...)) }
	if m.Sampling == (Sampling{}) && m.Plain == (Sampling{}) && m.Thinking == (Thinking{}) && m.Tools == (Tools{}) && m.End == nil {
		report("", "the file says nothing about the model (known: sampling, plain, thinking, tools, end)")
	}
	m.Sampling.check("sampling", report)
	m.Plain.check("plain", report)
	if b := m.Thinking.Budget; b != nil && (*b < 0 || *b > 1<<30) {
		report("thinking.budget", "budget is %d, want 0 to %d", *b, 1<<30)
	}
	among := func(key, value string, formats []string) {
		if formats = append(formats, NoFormat); value != "" && !slices.Contains(formats, value) {
			report(key, "%s is %q, want one of %s", key, value, strings.Join(formats, ", "))
		}
	}
	among("thinking.reasoning", m.Thinking.Reasoning, ReasoningFormats())
	among("tools.format", m.Tools.Format, ToolFormats())
	if slices.Contains(m.End, "") {
		report("end", "a text of end is empty")
	}
	return problems
}

func (s *Sampling) check(table string, report func(key, format string, args ...any)) {
	between := func(key string, value *float64, low, high float64) {
		if value != nil && !(*value >= low && *value <= high) {
			report(table+"."+key, "%s is %v, want %v to %v", key, *value, low, high)
		}
	}
	between("temperature", s.Temperature, 0, 2)
	between("top_p", s.TopP, 0.01, 1)
	between("min_p", s.MinP, 0, 1)
	between("repetition_penalty", s.RepetitionPenalty, 0.5, 2)
	between("presence_penalty", s.PresencePenalty, -2, 2)
	if k := s.TopK; k != nil && (*k < 0 || *k > 1<<20) {
		report(table+".top_k", "top_k is %d, want 0 to %d", *k, 1<<20)
	}
}
