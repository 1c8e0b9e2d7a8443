package table

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// Fit breaks a text at spaces, and after slashes, into lines of at most width columns, and cuts the middle of longer words. Control characters, which
// names in files may hold, are shown as such.
func Fit(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = printable(line)
		if displaywidth.String(line) <= width {
			lines = append(lines, line)
			continue
		}
		current := ""
		for _, word := range strings.Fields(line) {
			space := " "
			for _, piece := range pieces(word, width) {
				piece = Cut(piece, width)
				switch {
				case current == "":
					current = piece
				case displaywidth.String(current)+len(space)+displaywidth.String(piece) <= width:
					current += space + piece
				default:
					lines = append(lines, current)
					current = piece
				}
				space = ""
			}
		}
		lines = append(lines, current)
	}
	return strings.Join(lines, "\n")
}

// pieces are a word that fits, or what lies between its slashes.
func pieces(word string, width int) []string {
	if displaywidth.String(word) <= width {
		return []string{word}
	}
	return strings.SplitAfter(word, "/")
}

// Cut shortens a text to width columns: an ellipsis takes the place of its middle.
func Cut(text string, width int) string {
	if displaywidth.String(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	var parts []string
	var widths []int
	for graphemes := displaywidth.StringGraphemes(text); graphemes.Next(); {
		parts, widths = append(parts, graphemes.Value()), append(widths, graphemes.Width())
	}
	room := width - 1
	first, last := 0, len(parts)
	for head := (room + 1) / 2; first < last && widths[first] <= head; first++ {
		head -= widths[first]
		room -= widths[first]
	}
	for last > first && widths[last-1] <= room {
		last--
		room -= widths[last]
	}
	return strings.Join(parts[:first], "") + "…" + strings.Join(parts[last:], "")
}

// printable replaces what would move the cursor or command the terminal.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, line)
}
