package regex

import (
	"strings"
	"sync"
	"unicode"
)

// cased are the characters that have another case.
var cased = sync.OnceValue(func() (letters []rune) {
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if unicode.SimpleFold(c) != c {
			letters = append(letters, c)
		}
	}
	return letters
})

// derived are properties that Unicode says by others (DerivedCoreProperties.txt).
var derived = map[string][]*unicode.RangeTable{
	"Alphabetic": {unicode.L, unicode.Nl, unicode.Other_Alphabetic},
	"Lowercase":  {unicode.Ll, unicode.Other_Lowercase},
	"Uppercase":  {unicode.Lu, unicode.Other_Uppercase},
	"Math":       {unicode.Sm, unicode.Other_Math},
}

// shortScripts are the short names of scripts that patterns use; all have their long names.
var shortScripts = map[string]string{
	"Arab": "Arabic", "Armn": "Armenian", "Beng": "Bengali", "Bopo": "Bopomofo", "Cyrl": "Cyrillic", "Deva": "Devanagari", "Ethi": "Ethiopic",
	"Geor": "Georgian", "Grek": "Greek", "Gujr": "Gujarati", "Guru": "Gurmukhi", "Hang": "Hangul", "Hani": "Han", "Hebr": "Hebrew",
	"Hira": "Hiragana", "Kana": "Katakana", "Khmr": "Khmer", "Knda": "Kannada", "Laoo": "Lao", "Latn": "Latin", "Mlym": "Malayalam",
	"Mong": "Mongolian", "Mymr": "Myanmar", "Sinh": "Sinhala", "Taml": "Tamil", "Telu": "Telugu", "Thaa": "Thaana", "Thai": "Thai",
	"Tibt": "Tibetan", "Zinh": "Inherited", "Zyyy": "Common",
}

// property reads what is behind \p.
func (p *parser) property(at int) []rune {
	var text string
	if p.skip("{") {
		name, _, closed := strings.Cut(p.rest(), "}")
		if !closed {
			p.fail(at, `\p{ is not closed`)
			return nil
		}
		text = name
		p.at += len(name) + 1
	} else if c := p.next(); c != 0 {
		text = string(c)
	}
	class, known := property(strings.TrimPrefix(text, "^"))
	if !known {
		p.fail(at, "no category, script or property of Unicode is called %q here", text)
		return nil
	}
	p.charge(len(class))
	if strings.HasPrefix(text, "^") {
		return negate(class)
	}
	return class
}

// property is a category, a script or a property by its name, as name or kind=name.
func property(text string) ([]rune, bool) {
	kind, name, typed := strings.Cut(text, "=")
	if !typed {
		kind, name = "", text
	}
	switch kind {
	case "", "General_Category", "gc", "Script", "sc":
	default:
		return nil, false
	}
	category := name
	if long, alias := unicode.CategoryAliases[name]; alias {
		category = long
	}
	if table, known := unicode.Categories[category]; known && kind != "Script" && kind != "sc" {
		return ranges(table), true
	}
	script := name
	if long, short := shortScripts[name]; short {
		script = long
	}
	if table, known := unicode.Scripts[script]; known && kind != "General_Category" && kind != "gc" {
		return ranges(table), true
	}
	if kind != "" {
		return nil, false
	}
	switch name {
	case "Any":
		return negate(nil), true
	case "ASCII":
		return []rune{0, unicode.MaxASCII}, true
	case "Assigned":
		return negate(ranges(unicode.Categories["Cn"])), true
	}
	if tables, known := derived[name]; known {
		return ranges(tables...), true
	}
	if table, known := unicode.Properties[name]; known {
		return ranges(table), true
	}
	return nil, false
}

// ranges are the characters of tables, normalized.
func ranges(tables ...*unicode.RangeTable) []rune {
	var pairs []rune
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			pairs = append(pairs, lo, hi)
			return
		}
		for c := lo; c <= hi; c += stride {
			pairs = append(pairs, c, c)
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return normalize(pairs)
}
