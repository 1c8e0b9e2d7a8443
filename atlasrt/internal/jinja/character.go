package jinja

import (
	"strings"
	"unicode"
)

// characterTest is a method such as isdigit, nil where there is none of this name.
func characterTest(id string) func(string) bool {
	all := func(is func(rune) bool) func(string) bool {
		return func(s string) bool {
			return strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0 && s != ""
		}
	}
	switch id {
	case "isspace":
		return all(isSpace)
	case "isalpha":
		return all(unicode.IsLetter)
	case "isalnum":
		return all(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })
	case "isdigit":
		return all(func(c rune) bool { return unicode.IsDigit(c) || isOtherDigit(c) })
	case "isdecimal":
		return all(unicode.IsDigit)
	case "isnumeric":
		return all(unicode.IsNumber)
	case "isascii":
		return isASCII
	case "islower":
		return func(s string) bool { return isCased(s, unicode.IsLower, unicode.IsUpper) }
	case "isupper":
		return func(s string) bool { return isCased(s, unicode.IsUpper, unicode.IsLower) }
	}
	return nil
}

// isOtherDigit says whether c is a digit that is no decimal: a superscript or a digit in a circle.
func isOtherDigit(c rune) bool {
	return c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 || c >= 0x2074 && c <= 0x2079 || c >= 0x2080 && c <= 0x2089 || c >= 0x2460 && c <= 0x2468
}

func isCased(s string, want, not func(rune) bool) bool {
	found := false
	for _, c := range s {
		if not(c) || unicode.IsTitle(c) {
			return false
		}
		found = found || want(c)
	}
	return found
}
