package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Range is a half-open range of byte offsets.
type Range struct{ Start, End int }

// normalizer rewrites text, and says where the ranges of it that are data went.
type normalizer interface {
	normalize(text string, data []Range) (string, []Range)
}

// clip orders ranges, joins those that touch, and cuts them to [start,end); what is left counts from start.
func clip(ranges []Range, start, end int) []Range {
	var clipped []Range
	for _, r := range ranges {
		if r = (Range{max(r.Start, start) - start, min(r.End, end) - start}); r.Start < r.End {
			clipped = append(clipped, r)
		}
	}
	slices.SortFunc(clipped, func(a, b Range) int { return cmp.Compare(a.Start, b.Start) })
	joined := clipped[:0]
	for _, r := range clipped {
		if n := len(joined); n > 0 && r.Start <= joined[n-1].End {
			joined[n-1].End = max(joined[n-1].End, r.End)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// within is clip for ranges in order: it looks at those it needs.
func within(ranges []Range, start, end int) []Range {
	i, _ := slices.BinarySearchFunc(ranges, start, func(r Range, start int) int { return cmp.Compare(r.End, start+1) })
	j := i
	for j < len(ranges) && ranges[j].Start < end {
		j++
	}
	return clip(ranges[i:j], start, end)
}

// shift moves ranges by offset bytes.
func shift(ranges []Range, offset int) []Range {
	moved := make([]Range, len(ranges))
	for i, r := range ranges {
		moved[i] = Range{r.Start + offset, r.End + offset}
	}
	return moved
}

// eachStretch rewrites data and the text between separately, so that both keep their place.
func eachStretch(text string, data []Range, rewrite func(string) string) (string, []Range) {
	if len(data) == 0 {
		return rewrite(text), nil
	}
	var out strings.Builder
	moved := make([]Range, len(data))
	end := 0
	for i, r := range data {
		out.WriteString(rewrite(text[end:r.Start]))
		moved[i].Start = out.Len()
		out.WriteString(rewrite(text[r.Start:r.End]))
		moved[i].End = out.Len()
		end = r.End
	}
	out.WriteString(rewrite(text[end:]))
	return out.String(), clip(moved, 0, out.Len())
}

// replaceNormalizer writes content for each match.
type replaceNormalizer struct {
	pattern matcher
	content string
}

func (n replaceNormalizer) normalize(text string, data []Range) (string, []Range) {
	return eachStretch(text, data, func(s string) string {
		if old, ok := n.pattern.(literal); ok {
			return strings.ReplaceAll(s, string(old), n.content)
		}
		var out strings.Builder
		end := 0
		for _, m := range n.pattern.matches(s) {
			out.WriteString(s[end:m.start])
			out.WriteString(n.content)
			end = m.end
		}
		out.WriteString(s[end:])
		return out.String()
	})
}

// prependNormalizer writes itself before text that is not empty.
type prependNormalizer string

func (n prependNormalizer) normalize(text string, data []Range) (string, []Range) {
	if text == "" {
		return "", nil
	}
	return string(n) + text, shift(data, len(n))
}

// stripNormalizer takes white space from the ends.
type stripNormalizer struct{ left, right bool }

func (n stripNormalizer) normalize(text string, data []Range) (string, []Range) {
	start, end := 0, len(text)
	if n.left {
		start = end - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	}
	if n.right {
		end = start + len(strings.TrimRightFunc(text[start:], unicode.IsSpace))
	}
	return text[start:end], clip(data, start, end)
}

// lowercaseNormalizer lowers each code point by itself: a final sigma is no exception.
type lowercaseNormalizer struct{}

func (lowercaseNormalizer) normalize(text string, data []Range) (string, []Range) {
	return eachStretch(text, data, func(s string) string {
		// The one code point whose lower case is two.
		return strings.ToLower(strings.ReplaceAll(s, "İ", "i̇"))
	})
}

// unicodeNormalizer is one of the four Unicode normal forms.
type unicodeNormalizer norm.Form

func (n unicodeNormalizer) normalize(text string, data []Range) (string, []Range) {
	form := norm.Form(n)
	if form.IsNormalString(text) && !longSegment(form, text) {
		return text, data
	}
	// A mark composes with what precedes it: data grows to whole segments, so that stretches do not depend on each other.
	wide := make([]Range, len(data))
	for i, r := range data {
		wide[i] = r
		if r.Start < len(text) && !form.PropertiesString(text[r.Start:]).BoundaryBefore() {
			if before := lastBoundary(form, text[:r.Start]); before >= 0 {
				wide[i].Start = before
			}
		}
		if r.End < len(text) && !form.PropertiesString(text[r.End:]).BoundaryBefore() {
			wide[i].End = len(text)
			if after := form.FirstBoundaryInString(text[r.End:]); after >= 0 {
				wide[i].End = r.End + after
			}
		}
	}
	return eachStretch(text, clip(wide, 0, len(text)), func(s string) string {
		if longSegment(form, s) {
			return normalizeLong(form, s)
		}
		return form.String(s)
	})
}

// boundaryBytes is more than package norm looks back for a boundary.
const boundaryBytes = 256

// lastBoundary is form.LastBoundary of a text that may be long.
func lastBoundary(form norm.Form, text string) int {
	from := max(len(text)-boundaryBytes, 0)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	if at := form.LastBoundary([]byte(text[from:])); at >= 0 {
		return from + at
	}
	return -1
}

// maxMarks is how many marks in a row package norm takes before it inserts U+034F, which tokenizers do not.
const maxMarks = 30

// longSegment says whether text has more marks in a row, counted generously, than package norm takes.
func longSegment(form norm.Form, text string) bool {
	marks := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			marks = 0
			i++
			continue
		}
		p := form.PropertiesString(text[i:])
		if p.BoundaryBefore() {
			marks = 0
		}
		if marks++; marks > maxMarks/4 { // a code point decomposes into at most four marks
			return true
		}
		i += max(p.Size(), 1)
	}
	return false
}

// normalizeLong normalizes text with any number of marks in a row: decompose, order by combining class, compose.
func normalizeLong(form norm.Form, text string) string {
	type point struct {
		r     rune // or -1-b for a byte b that is not UTF-8
		class uint8
	}
	decompose, composes := norm.NFD, form == norm.NFC || form == norm.NFKC
	if form == norm.NFKC || form == norm.NFKD {
		decompose = norm.NFKD
	}
	points := make([]point, 0, len(text)/2)
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			points = append(points, point{r: -1 - rune(text[i])})
			continue
		}
		for _, d := range decompose.String(string(r)) {
			points = append(points, point{d, decompose.PropertiesString(string(d)).CCC()})
		}
	}
	for i := 0; i < len(points); i++ {
		end := i
		for end < len(points) && points[end].class != 0 {
			end++
		}
		slices.SortStableFunc(points[i:end], func(a, b point) int { return cmp.Compare(a.class, b.class) })
		i = end
	}
	kept, starter := points[:0], -1
	for _, p := range points {
		if composes && starter >= 0 && (starter == len(kept)-1 || kept[len(kept)-1].class < p.class) {
			if both, ok := compose(kept[starter].r, p.r); ok {
				kept[starter].r = both
				continue
			}
		}
		if p.class == 0 {
			starter = len(kept)
		}
		kept = append(kept, p)
	}
	var out strings.Builder
	for _, p := range kept {
		if p.r < 0 {
			out.WriteByte(byte(-1 - p.r))
			continue
		}
		out.WriteRune(p.r)
	}
	return out.String()
}

// compose is the code point that is canonically a followed by b.
func compose(a, b rune) (rune, bool) {
	if a < 0 || b < 0 {
		return 0, false
	}
	both := norm.NFC.String(string(a) + string(b))
	r, n := utf8.DecodeRuneInString(both)
	return r, n == len(both)
}
