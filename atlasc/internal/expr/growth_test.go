package expr

import "testing"

func TestGrows(t *testing.T) {
	s := scope(t)
	cases := []struct {
		text string
		want bool
	}{
		{"Rows*Cols*4 + Count", true},
		{"(Rows+127)/128*128*(W.Rows+4)", true},
		{"Rows/max(1, Cols)", true},
		{"min(Rows, 8)*kTile << 2", true},
		{"max(0, Rows-Cols)*Cols", true},
		{"Cols%8 - 5", true},
		{"Rows + kBelow", true},
		{"4*(Rows - 1)", true},
		{"Cols - Rows", false},
		{"-Rows", false},
		{"Rows*kBelow", false},
		{"Rows*(Rows-1)", false},
		{"Rows*(Cols-8)", false},
		{"Cols/max(1, Rows)", false},
		{"Rows%8", false},
		{"1000/max(1, Rows+1)", false},
	}
	for _, c := range cases {
		e, err := s.Int(c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := e.CheckGrowth() == nil; got != c.want {
			t.Errorf("%s grows: got %v, want %v", c.text, got, c.want)
		}
	}
}
