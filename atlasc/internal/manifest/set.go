package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/targets/strict"
)

// Parameters are what a manifest's [set] gives to the files that it includes: for each name, what {NAME} stands for in
// their texts. The zero value has none.
type Parameters struct {
	at     string // where they are set
	values map[string]string
}

// maxValue is how many bytes a parameter may have: those made of others could double at every include.
const maxValue = 256

// Parameters is what the manifest sets for those that it includes. They see no others: what was given to it is not passed
// on.
func (m *Manifest) Parameters() Parameters {
	p := Parameters{at: m.At("set").String(), values: map[string]string{}}
	for name, value := range m.Set {
		p.values[name] = short(value)
	}
	return p
}

// Uses tells whether a text of the manifest has a parameter of this name that the including manifest sets.
func (m *Manifest) Uses(name string) bool { return m.used[name] }

// UsesOwn tells whether a text of the manifest has a parameter of this name that its own [set] sets.
func (m *Manifest) UsesOwn(name string) bool { return m.own[name] }

// Fits tells whether the manifest, read with p, would be the same.
func (m *Manifest) Fits(p Parameters) bool {
	for name := range m.used {
		value, ok := p.values[name]
		if mine, given := m.given.values[name]; ok != given || value != mine {
			return false
		}
	}
	return true
}

// checkSet reports parameters that are no words, and values that are neither texts nor integers.
func (m *Manifest) checkSet(diags *diag.List) {
	for name, value := range m.Set {
		at := m.At("set." + name)
		if !wordForm.MatchString(name) {
			diags.Add(at, "write small letters and digits with single underscores", "parameter name %q is not a word", name)
		}
		switch v := value.(type) {
		case int64:
		case string:
			if len(v) > maxValue {
				diags.Add(at, "", "parameter %s has %d bytes, more than %d", name, len(v), maxValue)
			}
		default:
			diags.Add(at, "write an integer or a string", "parameter %s is neither an integer nor a string", name)
		}
	}
}

// parameter is how a text names one.
var parameter = regexp.MustCompile(`\{[^{}]*\}`)

// fill puts values in the place of a text's parameters, in capitals for a name in capitals. They are those of the manifest's
// own [set], which is read before all else, and those that are given; in a text of [set] itself only the latter, so that no
// value depends on itself.
func (m *Manifest) fill(text string, inSet bool) (string, *strict.Problem) {
	if !strings.ContainsAny(text, "{}") {
		return text, nil
	}
	if strings.ContainsAny(parameter.ReplaceAllString(text, ""), "{}") {
		return "", &strict.Problem{Msg: fmt.Sprintf("braces of %q do not match: they are for parameters", text)}
	}
	var problem *strict.Problem
	filled := parameter.ReplaceAllStringFunc(text, func(braced string) string {
		name := strings.Trim(braced, "{}")
		switch value, ok := m.value(strings.ToLower(name), inSet); {
		case ok && name == strings.ToLower(name):
			return value
		case ok && name == strings.ToUpper(name):
			return strings.ToUpper(value)
		}
		known, where := slices.Collect(maps.Keys(m.given.values)), "by the manifest that includes this one, and [set] knows no other"
		if !inSet {
			known, where = slices.AppendSeq(known, maps.Keys(m.Set)), "here or by the manifest that includes this one"
		}
		slices.Sort(known)
		known = slices.Compact(known)
		problem = &strict.Problem{Msg: fmt.Sprintf("parameter %s is not set %s", braced, where), Unknown: name, Known: known}
		return braced
	})
	return filled, problem
}

// value is what a parameter stands for, and whether it is set. It remembers by whom.
func (m *Manifest) value(name string, inSet bool) (string, bool) {
	if value, ok := m.Set[name]; ok && !inSet {
		m.own[name] = true
		return short(value), true
	}
	m.used[name] = true
	value, ok := m.given.values[name]
	return value, ok
}

// short is a value of [set] as texts have it; what checkSet reports is cut.
func short(value any) string {
	switch v := value.(type) {
	case int64:
		return fmt.Sprint(v)
	case string:
		return v[:min(len(v), maxValue)]
	}
	return ""
}
