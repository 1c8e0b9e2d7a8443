package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// Whatever is plotted, the text is well-formed and every point lies inside.
func TestSVG(t *testing.T) {
	cases := []Roofline{
		{Title: "nothing"},
		{Title: "one <point> & more", Ceiling: 4.7e12, Groups: []string{"a<b"}, Points: []Point{{"x\"y", 1e6, 2e9, 0}}},
		{Title: "odd", Points: []Point{{"zero", 0, 0, 0}, {"none", math.NaN(), math.Inf(1), -7}, {"same", 1000, 1000, 99}}},
	}
	for _, c := range cases {
		d := xml.NewDecoder(strings.NewReader(c.SVG()))
		points := 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", c.Title, err, c.SVG())
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
				points++
			}
		}
		if strings.Contains(c.SVG(), "NaN") || strings.Contains(c.SVG(), "Inf") {
			t.Errorf("%s: a coordinate is no number:\n%s", c.Title, c.SVG())
		}
		want := len(c.Groups)
		for _, p := range c.Points {
			if p.Bytes > 0 {
				want++
			}
		}
		if points != want {
			t.Errorf("%s: got %d circles, want %d", c.Title, points, want)
		}
	}
	s := (&Roofline{Ceiling: 1e9, Points: []Point{{"at", 1e6, 1e9, 0}}}).SVG()
	if !strings.Contains(s, `cy="316.0"`) || !strings.Contains(s, `M72 316.0H610" stroke="#b00"`) {
		t.Errorf("a point at the ceiling does not lie on it:\n%s", s)
	}
}

func TestUnit(t *testing.T) {
	cases := []struct {
		e    int
		want string
	}{{0, "1 B"}, {2, "100 B"}, {3, "1 kB"}, {10, "10 GB"}, {16, "10 PB"}, {20, "100000 PB"}, {-1, "0.1 B"}}
	for _, c := range cases {
		if got := unit(c.e, "B"); got != c.want {
			t.Errorf("10^%d: got %q, want %q", c.e, got, c.want)
		}
	}
}
