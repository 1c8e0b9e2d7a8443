package completion

import (
	"strings"
	"testing"
)

// Whatever way a text is cut, the same of it is shown, and nothing that follows or belongs to a stop string.
func TestMatcherShowsTheSameHoweverTextIsCut(t *testing.T) {
	cases := []struct {
		text, want, found string
		stops             []string
	}{
		{"hello world", "hello world", "", nil},
		{"hello world", "hello ", "world", []string{"world"}},
		{"hello world", "hello world", "", []string{"worlds", "xyz"}},
		{"aaab", "a", "aab", []string{"aab"}},
		{"one\n\nUser: two", "one", "\n\nUser:", []string{"User:", "\n\nUser:"}},
		{"abcd", "", "abc", []string{"abcx", "abc"}},
		{"xabcd", "x", "abcd", []string{"abc", "abcd"}},
		{"naïve 🙂 end", "naïve ", "🙂", []string{"🙂"}},
		{"ab", "ab", "", []string{"abc"}},
		{"", "", "", []string{"x"}},
	}
	for _, c := range cases {
		for size := 1; size <= len(c.text)+1; size++ {
			m := matcher{stops: c.stops}
			var shown strings.Builder
			for i := 0; i < len(c.text); i += size {
				shown.WriteString(m.push(c.text[i:min(i+size, len(c.text))]))
			}
			if m.found == "" {
				shown.WriteString(m.flush())
			}
			// A shorter stop string that ends first wins while the longer has not come yet; whole texts tell which is meant.
			if size <= len(c.text) && c.want != shown.String() {
				t.Errorf("%q stopped by %q in pieces of %d: showed %q, want %q", c.text, c.stops, size, shown.String(), c.want)
			}
			if c.found == "" != (m.found == "") {
				t.Errorf("%q stopped by %q in pieces of %d: found %q, want %q", c.text, c.stops, size, m.found, c.found)
			}
		}
	}
}
