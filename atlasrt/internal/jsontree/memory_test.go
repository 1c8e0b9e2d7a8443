package jsontree

import (
	"runtime"
	"strings"
	"testing"
)

// What a document takes is bounded: by its own size for texts, and by the number of values for the rest.
func TestDocumentsTakeBoundedMemory(t *testing.T) {
	const size = 8 << 20
	many := func(text string) string { return "[" + strings.Repeat(text+",", size/(len(text)+1)) + "0]" }
	cases := []struct {
		name, document string
		most           uint64 // bytes
	}{
		{"text", `"` + strings.Repeat(" ", size) + `"`, size + size/8},
		{"escapes", `"` + strings.Repeat(`\n`, size/2) + `"`, 2 * size},
		{"small integers", many("1"), 48 << 20},
		{"large integers", many("123456789012345678901234567890"), 96 << 20},
		{"empty objects", many("{}"), 64 << 20},
		{"objects", many(`{"a":1}`), 64 << 20},
		{"messages", `{"messages":` + many(`{"role":"user","content":""}`) + `}`, 64 << 20},
		{"depth", strings.Repeat("[", size), 1 << 20},
		{"keys", "{" + strings.Repeat(`"a":{"b":`, size/9), 1 << 20},
	}
	for _, c := range cases {
		document := []byte(c.document)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(document, Limits{})
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > c.most {
			t.Errorf("%s: %d bytes of JSON take %d (%v), want at most %d", c.name, len(document), got, err, c.most)
		}
	}
}
