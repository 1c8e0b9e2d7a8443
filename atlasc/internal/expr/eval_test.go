package expr

import "testing"

func TestAt(t *testing.T) {
	scope := scope(t)
	values := map[string]int64{"Rows": 9, "W.Rows": 50, "exact": 0}
	cases := []struct {
		text  string
		want  int64
		known bool
	}{
		{"(W.Rows+kTile-1)/kTile", 7, true},
		{"min(Rows, 4) * max(W.Rows, 100, 3)", 400, true},
		{"-Rows % 4", -1, true},
		{"ceil(W.Rows, kTile)*ceil(Rows+1, 5)", 14, true},
		{"Rows << 3 >> 1", 36, true},
		{"Cols * 0", 0, false},
		{"5", 5, true},
	}
	for _, x := range cases {
		e, err := scope.Int(x.text)
		if err != nil {
			t.Fatalf("%s: %v", x.text, err)
		}
		if got, known := e.IntAt(values); got != x.want || known != x.known {
			t.Errorf("%s: got %d, %v, want %d, %v", x.text, got, known, x.want, x.known)
		}
	}
	conditions := []struct {
		text         string
		value, known bool
	}{
		{"Rows <= 8", false, true},
		{"Rows <= 8 && Cols == 3", false, true},
		{"Rows > 8 && Cols == 3", false, false},
		{"Rows > 8 || Cols == 3", true, true},
		{"Rows <= 8 || exact", false, true},
		{"vnni", false, false},
		{"!exact", true, true},
		{"W.Scheme == SchemeQ8_0", false, false},
	}
	for _, x := range conditions {
		e, err := scope.Bool(x.text)
		if err != nil {
			t.Fatalf("%s: %v", x.text, err)
		}
		if value, known := e.BoolAt(values); value != x.value || known != x.known {
			t.Errorf("%s: got %v, %v, want %v, %v", x.text, value, known, x.value, x.known)
		}
	}
}

func TestGiven(t *testing.T) {
	s := scope(t)
	cases := []struct{ when, want string }{
		{"Cols == 8", ""},
		{"Cols > 8", "never"},
		{"Rows <= 4 && Cols == 8", "Rows <= 4"},
		{"Rows <= 4 && Cols > 8", "never"},
		{"Rows <= 4 && (Cols%8 == 0 && !exact)", "Rows <= 4 && !exact"},
		{"Cols > 8 || Rows <= 4", "Cols > 8 || Rows <= 4"},
		{"Cols <= 8 || Rows <= 4", ""},
	}
	for _, c := range cases {
		e, err := s.Bool(c.when)
		if err != nil {
			t.Fatal(err)
		}
		left, possible := e.Given(map[string]int64{"Cols": 8})
		got := ""
		if !possible {
			got = "never"
		} else if left != nil {
			got = left.Text
		}
		if got != c.want {
			t.Errorf("%s with 8 columns: got %q, want %q", c.when, got, c.want)
		}
	}
}
