package quant

import (
	"regexp"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// kind is how the entries of a list name modules.
type kind int

const (
	exact  kind = iota // whole names, classes, and regular expressions after "re:"
	dotted             // names or parts of names between dots, and globs whose * crosses dots
)

// list is names and patterns of modules.
type list struct {
	key      string            // of the configuration
	names    map[string]string // entries without wildcards as written, by their bare names
	parts    bool              // an entry without wildcards may be any part of a name between dots
	linear   bool              // has the class of all matrices
	patterns []*pattern
}

// pattern is an entry with wildcards.
type pattern struct {
	text     string // as it is written
	re       *regexp.Regexp
	anywhere bool            // what stands before a module's bare name makes no difference
	numbered bool            // what matches may depend on digits
	known    map[string]bool // what was found out, by names in which all digits are 0; for patterns that are not numbered
}

// newList makes a list of a key. An entry that cannot be read is an error of the configuration.
func newList(c *weights.Config, key string, entries []string, kind kind) *list {
	l := &list{key: key, names: map[string]string{}, parts: kind == dotted}
	for _, entry := range entries {
		text, isRegexp := strings.CutPrefix(entry, "re:")
		switch {
		case isRegexp:
		case kind == exact && entry == "Linear":
			l.linear = true
			continue
		case kind == dotted && strings.ContainsAny(entry, "*?["):
			text = glob(entry)
		default:
			if name := bare(strings.Trim(entry, ".")); name != "" {
				l.names[name] = entry
			}
			continue
		}
		re, err := regexp.Compile("^(?:" + text + ")")
		if err != nil {
			c.Fail(key, "has the pattern %q, which cannot be read (Go's regular expressions have no lookahead and no backreferences): %v", entry, err)
			continue
		}
		l.patterns = append(l.patterns, &pattern{entry, re, strings.HasPrefix(text, ".*"), strings.ContainsAny(text, "0123456789["), map[string]bool{}})
	}
	return l
}

// glob is the regular expression of a shell pattern, of a whole name.
func glob(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			out.WriteString(".*")
		case '?':
			out.WriteString(".")
		case '[':
			end := strings.IndexByte(text[i:], ']')
			if end < 0 {
				out.WriteString(`\[`)
				continue
			}
			set := text[i+1 : i+end]
			if rest, ok := strings.CutPrefix(set, "!"); ok {
				set = "^" + rest
			}
			out.WriteString("[" + set + "]")
			i += end
		default:
			out.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return out.String() + "$"
}

// find is the entry that matches a module, if one does; "" for the class of all matrices.
func (l *list) find(m module) (entry string, ok bool) {
	if entry, ok := l.named(m.bare); ok {
		return entry, true
	}
	for _, p := range l.patterns {
		if p.matches(m) {
			return p.text, true
		}
	}
	return "", l.linear
}

// named finds an entry without wildcards.
func (l *list) named(name string) (entry string, ok bool) {
	if entry, ok := l.names[name]; ok || !l.parts || len(l.names) == 0 {
		return entry, ok
	}
	for start := 0; ; {
		for end := start; end < len(name); {
			if next := strings.IndexByte(name[end+1:], '.'); next >= 0 {
				end += 1 + next
			} else {
				end = len(name)
			}
			if entry, ok := l.names[name[start:end]]; ok {
				return entry, true
			}
		}
		next := strings.IndexByte(name[start:], '.')
		if next < 0 {
			return "", false
		}
		start += next + 1
	}
}

// matches reports whether a module matches under any of the names that models give it.
func (p *pattern) matches(m module) bool {
	if found, ok := p.known[m.zeros]; ok { // never of a numbered pattern
		return found
	}
	found := p.re.MatchString(m.bare)
	if !p.anywhere {
		for _, prefix := range prefixes {
			found = found || p.re.MatchString(prefix+m.bare)
		}
	}
	if !p.numbered {
		p.known[m.zeros] = found
	}
	return found
}

// module is the name of a module, without prefixes, and the same with all digits 0.
type module struct{ bare, zeros string }

func moduleOf(name string) module {
	name = bare(name)
	return module{name, zeros(name)}
}

// zeros is a name in which all digits are 0.
func zeros(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return '0'
		}
		return c
	}, name)
}

// prefixes may stand before the name of a module, in lists or in files.
var prefixes = []string{"model.language_model.", "language_model.model.", "model.", "language_model."}

// bare is a name without prefixes.
func bare(name string) string {
	for {
		rest, ok := strings.CutPrefix(name, "model.")
		if !ok {
			rest, ok = strings.CutPrefix(name, "language_model.")
		}
		if !ok {
			break
		}
		name = rest
	}
	if name == "model" || name == "language_model" {
		return ""
	}
	return name
}
