package jinja

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isSpace is Python's str.isspace for one character, which also counts the ASCII separators 0x1c…0x1f.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// scanDigits is the size of digits with single underscores between them.
func scanDigits(s string, is func(byte) bool) int {
	i := 0
	for i < len(s) && (is(s[i]) || i > 0 && s[i] == '_' && i+1 < len(s) && is(s[i+1])) {
		i++
	}
	return i
}

// scanInteger is the size of an integer literal: 0x, 0o, 0b, or decimal without leading zeros.
func scanInteger(s string) int {
	if len(s) > 2 && s[0] == '0' {
		var is func(byte) bool
		switch s[1] | 0x20 {
		case 'x':
			is = func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
		case 'o':
			is = func(c byte) bool { return c >= '0' && c <= '7' }
		case 'b':
			is = func(c byte) bool { return c == '0' || c == '1' }
		}
		if is != nil {
			digits := s[2:]
			skip := 0
			if digits[0] == '_' {
				skip = 1
			}
			if n := scanDigits(digits[skip:], is); n > 0 {
				return 2 + skip + n
			}
		}
	}
	if s[0] == '0' {
		return scanDigits(s, func(c byte) bool { return c == '0' })
	}
	return scanDigits(s, isDigit)
}

// scanNumber recognises a number literal.
func scanNumber(s string) (tokenKind, int) {
	if !isDigit(s[0]) {
		return 0, 0
	}
	size := scanDigits(s, isDigit)
	isFloat := false
	if size+1 < len(s) && s[size] == '.' && isDigit(s[size+1]) {
		size += 1 + scanDigits(s[size+1:], isDigit)
		isFloat = true
	}
	if size+1 < len(s) && s[size]|0x20 == 'e' {
		exponent := size + 1
		if s[exponent] == '+' || s[exponent] == '-' {
			exponent++
		}
		if n := scanDigits(s[exponent:], isDigit); n > 0 {
			return tokenFloat, exponent + n
		}
	}
	if isFloat {
		return tokenFloat, size
	}
	return tokenInteger, scanInteger(s)
}

// scanName is the size of an identifier.
func scanName(s string) int {
	for i, c := range s {
		if c == '_' || unicode.IsLetter(c) || i > 0 && (unicode.IsDigit(c) || unicode.IsMark(c)) {
			continue
		}
		return i
	}
	return len(s)
}

// scanOperator is the size of an operator.
func scanOperator(s string) int {
	if len(s) >= 2 {
		switch s[:2] {
		case "//", "**", "==", "!=", ">=", "<=":
			return 2
		}
	}
	if strings.IndexByte("+-*/%~[](){}<>=.:|,;", s[0]) >= 0 {
		return 1
	}
	return 0
}

// unescape resolves the backslash escapes of a string literal as Python does: unknown ones stay as they are.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"':
			out = append(out, c)
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			out = append(out, "\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case 'x', 'u', 'U':
			size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			code, err := hexCode(s[i+1:], size)
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, code)
			i += size
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := 1
			for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
				n++
			}
			code, _ := strconv.ParseUint(s[i:i+n], 8, 32)
			out = utf8.AppendRune(out, rune(code))
			i += n - 1
		case 'N':
			return "", errors.New(`\N{...} escapes are not supported (write the character)`)
		default:
			out = append(out, '\\', c)
		}
	}
	return string(out), nil
}

func hexCode(s string, size int) (rune, error) {
	if len(s) < size {
		return 0, errors.New("truncated escape in a string")
	}
	code, err := strconv.ParseUint(s[:size], 16, 32)
	if err != nil || code > unicode.MaxRune {
		return 0, errors.New("bad escape in a string")
	}
	return rune(code), nil
}
