package jsontree

import "unicode/utf8"

// Append appends a value as JSON, with a space after commas and colons as Python's json.dumps writes it. Characters beyond ASCII are not
// escaped.
func Append(b []byte, v Value) []byte {
	switch v := v.(type) {
	case Bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case Number:
		return append(b, v...)
	case String:
		return AppendString(b, string(v))
	case Array:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = Append(b, item)
		}
		return append(b, ']')
	case *Object:
		b = append(b, '{')
		first := true
		for key, value := range v.All() {
			if !first {
				b = append(b, ", "...)
			}
			first = false
			b = append(AppendString(b, key), ": "...)
			b = Append(b, value)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// AppendString appends text as a JSON string. Each byte that is not UTF-8 becomes U+FFFD.
func AppendString(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	plain := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				b = utf8.AppendRune(append(b, text[plain:i]...), r)
				plain = i + 1
			}
			i += size
			continue
		}
		i++
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, text[plain:i-1]...)
		plain = i
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, text[plain:]...), '"')
}
