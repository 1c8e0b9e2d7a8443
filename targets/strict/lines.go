package strict

import (
	"fmt"
	"strings"
)

// Lines tells where in a file each key stands. Elements of arrays of tables have numbers: kernel[0].launch[1].grid.
type Lines struct{ line map[string]int }

// At is the line of a key (of its first element, for an array of tables), or of the nearest table around it; 0 where
// there is neither.
func (l *Lines) At(path string) int {
	for path != "" {
		if line, ok := l.line[path]; ok {
			return line
		}
		if line, ok := l.line[path+"[0]"]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}

// scan finds the keys of a text that the TOML parser has accepted, which is why it need not complain.
func scan(text string) *Lines {
	l := &Lines{line: map[string]int{}}
	count := map[string]int{} // elements so far of the array of tables at a path
	table, line := "", 1
	for text != "" {
		text = strings.TrimLeft(text, " \t\r")
		end := statement(text)
		s := text[:end]
		switch {
		case s == "" || s[0] == '#':
		case strings.HasPrefix(s, "[["):
			table = numbered(name(s[2:], ']'), count)
			table = fmt.Sprintf("%s[%d]", table, count[table])
			count[table[:strings.LastIndexByte(table, '[')]]++
			l.line[table] = line
		case s[0] == '[':
			table = numbered(name(s[1:], ']'), count)
			l.line[table] = line
		default:
			path := name(s, '=')
			if table != "" {
				path = table + "." + path
			}
			l.line[path] = line
		}
		line += strings.Count(s, "\n") + 1
		if end == len(text) {
			break
		}
		text = text[end+1:]
	}
	return l
}

// name reads a dotted key up to its end mark; quotes around parts are dropped.
func name(s string, end byte) string {
	if i := strings.IndexByte(s, end); i >= 0 {
		s = s[:i]
	}
	parts := strings.Split(s, ".")
	for i := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(parts[i]), `"'`)
	}
	return strings.Join(parts, ".")
}

// numbered adds the number of the current element to each table of a path but the last that is an array.
func numbered(path string, count map[string]int) string {
	parts := strings.Split(path, ".")
	full := parts[0]
	for _, part := range parts[1:] {
		if n := count[full]; n > 0 {
			full = fmt.Sprintf("%s[%d]", full, n-1)
		}
		full += "." + part
	}
	return full
}

// statement is the length of the first statement of s: up to a newline outside strings and brackets.
func statement(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\n':
			if depth <= 0 {
				return i
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '#':
			if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
				i += n - 1
			} else {
				return len(s)
			}
		case '"', '\'':
			i += quoted(s[i:]) - 1
		}
	}
	return len(s)
}

// quoted is the length of the string that s starts with.
func quoted(s string) int {
	mark := s[:1]
	if len(s) >= 3 && s[1] == s[0] && s[2] == s[0] {
		mark = s[:3]
	}
	for i := len(mark); i < len(s); i++ {
		switch {
		case s[i] == '\\' && mark[0] == '"':
			i++
		case strings.HasPrefix(s[i:], mark):
			i += len(mark)
			for len(mark) == 3 && i < len(s) && s[i] == mark[0] { // up to two more quotes belong to the text
				i++
			}
			return i
		}
	}
	return len(s)
}
