package parse

import (
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar/kind"
	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// kinds are those that the tool whose call goes on declares for a parameter.
func (s *scanner) kinds(parameter string) kind.Set {
	if !s.known() {
		return 0
	}
	return kind.Declared(s.tool.Parameters, parameter)
}

// isText tells whether a value that begins with what came can only be text.
func isText(k kind.Set, came []byte) bool {
	if k == kind.String|kind.Null {
		return len(came) > 2*len("null") || !strings.HasPrefix("null", strings.TrimSpace(string(came)))
	}
	return k.OnlyText()
}

// coerce makes JSON of a value as it was written. Null counts where it is declared, and where text is not.
func coerce(k kind.Set, written string) string {
	value := strings.TrimSpace(written)
	switch lower := strings.ToLower(value); {
	case (lower == "null" || lower == "none") && k.Nulls():
		return "null"
	case (lower == "true" || lower == "false") && k&kind.Boolean != 0:
		return lower
	}
	if accepts := k.Values(); accepts != 0 {
		if v, err := jsontree.Decode([]byte(value), jsontree.Limits{}); err == nil && kind.Of(v)&accepts != 0 {
			return value
		}
	}
	return quoted(written)
}

// quoted is a text as a JSON string.
func quoted(text string) string { return `"` + escaped(text) + `"` }

// escaped is a text as it stands within a JSON string. Bytes beyond ASCII remain, so that a code point may come in pieces.
func escaped(text string) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(b)
}
