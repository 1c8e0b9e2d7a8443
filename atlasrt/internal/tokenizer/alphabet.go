package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Files of byte-level models spell a token's bytes in an alphabet of 256 visible characters: 33–126, 161–172 and
// 174–255 are themselves, and the other 68 are U+0100 and up, in order.

// inAlphabet says whether a byte is spelled as the character of the same number.
func inAlphabet(b rune) bool {
	return b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174 && b <= 255
}

// alphabetByte is the byte that a character of the alphabet stands for.
func alphabetByte(r rune) (byte, bool) {
	switch {
	case r > 0xFF+68 || r <= 0xFF && !inAlphabet(r):
		return 0, false
	case r <= 0xFF:
		return byte(r), true
	case r <= 0xFF+33: // 0–32
		return byte(r - 0x100), true
	case r <= 0xFF+67: // 127–160
		return byte(r - 0x100 - 33 + 127), true
	}
	return 173, true
}

// toAlphabet spells the bytes of text.
func toAlphabet(text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		switch {
		case inAlphabet(rune(b)):
			out.WriteRune(rune(b))
		case b <= 32:
			out.WriteRune(0x100 + rune(b))
		case b == 173:
			out.WriteRune(0x100 + 67)
		default: // 127–160
			out.WriteRune(0x100 + 33 + rune(b) - 127)
		}
	}
	return out.String()
}

// fromAlphabet is the bytes that a token stands for; false where it has a character that is not of the alphabet.
func fromAlphabet(token string) (string, bool) {
	raw := make([]byte, 0, len(token))
	for i, r := range token {
		b, ok := alphabetByte(r)
		if !ok || r == utf8.RuneError && token[i] != "\uFFFD"[0] {
			return "", false
		}
		raw = append(raw, b)
	}
	return string(raw), true
}
