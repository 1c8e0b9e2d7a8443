package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// at follows keys and indices into a document, and writes what is there.
func at(v any, path ...any) string {
	v, ok := find(v, path...)
	if !ok {
		return "absent"
	}
	return fmt.Sprint(v)
}

// list is the array that a path leads to; nil where there is none.
func list(v any, path ...any) []any {
	v, _ = find(v, path...)
	l, _ := v.([]any)
	return l
}

func find(v any, path ...any) (any, bool) {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			value, ok := m[key]
			if !ok {
				return nil, false
			}
			v = value
		case int:
			l, _ := v.([]any)
			if key >= len(l) {
				return nil, false
			}
			v = l[key]
		}
	}
	return v, true
}
