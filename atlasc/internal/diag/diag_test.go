package diag

import "testing"

func TestList(t *testing.T) {
	var l List
	if err := l.Err(); err != nil {
		t.Fatalf("empty list: got %v, want no error", err)
	}
	l.Add(Pos{File: "b.toml", Line: 2}, "", "second")
	l.Add(Pos{File: "a.toml", Line: 10}, "do this", "tenth of %d", 10)
	l.Add(Pos{File: "a.toml", Line: 9}, "", "ninth")
	l.Add(Pos{File: "b.toml", Line: 2}, "", "second")
	l.Add(Pos{File: "a.toml"}, "", "whole")
	l.Add(Pos{File: "b.toml", Line: 2, Set: "c.toml:3"}, "do it", "second")
	want := "a.toml: whole\na.toml:9: ninth\na.toml:10: tenth of 10 (do this)\nb.toml:2: second\nb.toml:2: second (do it) [parameters of c.toml:3]"
	if got := l.Err().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"scratch", "grid", "when", "inst"}
	cases := []struct{ name, want string }{
		{"gird", "did you mean grid?"},
		{"scrach", "did you mean scratch?"},
		{"Grid", "did you mean grid?"},
		{"wehn", "did you mean when?"},
		{"threads", "known: grid, inst, scratch, when"},
	}
	for _, c := range cases {
		if got := Suggest(c.name, known); got != c.want {
			t.Errorf("Suggest(%q): got %q, want %q", c.name, got, c.want)
		}
	}
	if got := Suggest("x", nil); got != "" {
		t.Errorf("nothing known: got %q, want none", got)
	}
}
