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

// Parameters is what {NAME} stands for in the texts of a manifest; in capitals it stands for the value in capitals. Names
// are those of the including manifest's [set]. The zero value has none.
type Parameters struct {
	at     string // where they are set
	values map[string]string
}

// maxValue is how many bytes a parameter may have: those made of others could double at every include.
const maxValue = 256

// Parameters is what the manifest sets for those that it includes, and for them alone.
func (m *Manifest) Parameters() Parameters {
	p := Parameters{at: m.At("set").String(), values: map[string]string{}}
	for name, value := range m.Set {
		p.values[name] = fmt.Sprint(value)
	}
	return p
}

// Uses tells whether a text of the manifest has a parameter of this name.
func (m *Manifest) Uses(name string) bool { return m.used[name] }

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

// fill puts values in the place of a text's parameters, whose names it adds to used.
func (p Parameters) fill(text string, used map[string]bool) (string, *strict.Problem) {
	if !strings.ContainsAny(text, "{}") {
		return text, nil
	}
	if strings.ContainsAny(parameter.ReplaceAllString(text, ""), "{}") {
		return "", &strict.Problem{Msg: fmt.Sprintf("braces of %q do not match: they are for parameters", text)}
	}
	var problem *strict.Problem
	filled := parameter.ReplaceAllStringFunc(text, func(braced string) string {
		name := strings.Trim(braced, "{}")
		lower := strings.ToLower(name)
		used[lower] = true
		switch value, set := p.values[lower]; {
		case set && name == lower:
			return value
		case set && name == strings.ToUpper(name):
			return strings.ToUpper(value)
		}
		problem = &strict.Problem{
			Msg:     fmt.Sprintf("parameter %s is not set by the manifest that includes this one", braced),
			Unknown: name, Known: slices.Sorted(maps.Keys(p.values)),
		}
		return braced
	})
	return filled, problem
}
