// Package plot draws rooflines as SVG that stands by itself: no script, no font and no file besides.
//
// A point is a call: the bytes that it must move against the bytes per second that it reached. Both axes are
// logarithmic; the ceiling is what a plain read reaches.
package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Point is one call.
type Point struct {
	Label          string  // shown where the mouse points
	Bytes          float64 // that it must move
	BytesPerSecond float64 // that it moved
	Group          int     // points of a group have a colour
}

// Roofline is one plot.
type Roofline struct {
	Title   string   // above the plot
	Ceiling float64  // bytes per second; 0: unknown
	Groups  []string // names of colours
	Points  []Point  // one for each case
}

// Sizes in pixels.
const (
	width, height           = 640, 360
	left, right, top, below = 72, 30, 34, 44
)

// colours of groups, told apart by people who see colours differently (Okabe and Ito 2008).
var colours = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// SVG draws the plot.
func (r *Roofline) SVG() string {
	x, y := span{}, span{}
	for _, p := range r.Points {
		x.add(p.Bytes)
		y.add(p.BytesPerSecond)
	}
	y.add(r.Ceiling)
	x.round()
	y.round()
	across := func(v float64) float64 { return left + x.share(v)*(width-left-right) }
	up := func(v float64) float64 { return height - below - y.share(v)*(height-top-below) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11" role="img">`, width, height, width, height)
	fmt.Fprintf(&b, `<title>%s</title><rect width="100%%" height="100%%" fill="#fff"/>`, html.EscapeString(r.Title))
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14" font-weight="bold">%s</text>`, left, html.EscapeString(r.Title))
	for e := x.low; e <= x.high; e++ {
		at := across(math.Pow(10, float64(e)))
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`, at, top, height-below, at, height-below+16, unit(e, "B"))
	}
	for e := y.low; e <= y.high; e++ {
		at := up(math.Pow(10, float64(e)))
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, left, at, width-right, left-6, at+4, unit(e, "B/s"))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">bytes that a call must move</text>`, (left+width-right)/2, height-8)
	if r.Ceiling > 0 {
		at := up(r.Ceiling)
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#b00" stroke-width="1.5" stroke-dasharray="6 3"/><text x="%d" y="%.1f" fill="#b00">a plain read: %.4g GB/s</text>`,
			left, at, width-right, left+4, at-5, r.Ceiling/1e9)
	}
	for _, p := range r.Points {
		if p.Bytes > 0 && p.BytesPerSecond > 0 {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s" fill-opacity=".8"><title>%s: %.4g GB/s</title></circle>`,
				across(p.Bytes), up(p.BytesPerSecond), colour(p.Group), html.EscapeString(p.Label), p.BytesPerSecond/1e9)
		}
	}
	for i, name := range r.Groups {
		at := height - below - 12 - 15*(len(r.Groups)-1-i)
		fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="4" fill="%s"/><text x="%d" y="%d" text-anchor="end">%s</text>`, width-right-10, at, colour(i), width-right-20, at+4, html.EscapeString(name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func colour(group int) string { return colours[(group%len(colours)+len(colours))%len(colours)] }

// span is powers of ten around values.
type span struct {
	low, high int
	any       bool
}

func (s *span) add(v float64) {
	if !(v > 0) || math.IsInf(v, 0) {
		return
	}
	e := math.Log10(v)
	low, high := int(math.Floor(e)), int(math.Ceil(e))
	if !s.any {
		s.low, s.high, s.any = low, high, true
	}
	s.low, s.high = min(s.low, low), max(s.high, high)
}

// round leaves at least one power of ten between the ends.
func (s *span) round() {
	if s.high == s.low {
		s.high++
	}
}

// share is where a value lies between the ends, 0 to 1.
func (s *span) share(v float64) float64 {
	return (math.Log10(v) - float64(s.low)) / float64(s.high-s.low)
}

// unit is 10^e with a prefix: 10 MB.
func unit(e int, of string) string {
	prefixes := [...]string{"", "k", "M", "G", "T", "P"}
	i := min(max(int(math.Floor(float64(e)/3)), 0), len(prefixes)-1)
	return fmt.Sprintf("%g %s%s", math.Pow(10, float64(e-3*i)), prefixes[i], of)
}
