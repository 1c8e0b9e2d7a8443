// Package wrap breaks running text into lines of a terminal at word ends, as the text comes.
//
// A word is held back until it is complete, and so is a character, which may be several code points. Line ends are added; spaces at which
// a line is broken are left out; control characters are replaced by pictures of them, so that no text of a model commands the terminal.
package wrap

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// tab is how far apart tab stops are.
const tab = 8

// longest bounds the bytes that are held back: what is longer is not waited for.
const longest = 1 << 10

// Writer wraps what is written to it. Flush writes what is held back.
type Writer struct {
	to     io.Writer
	width  int    // columns of a line; 0: no line is broken
	column int    // where the next character goes
	spaces string // spaces before word, which are left out where the line is broken
	word   string // the word that has begun
	half   []byte // the first bytes of a code point
}

// New makes a Writer for lines of so many columns; 0 breaks none.
func New(to io.Writer, width int) *Writer { return &Writer{to: to, width: width} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	data := append(w.half, p...)
	whole := len(data)
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		if b := data[len(data)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(data[len(data)-back:]) {
				whole -= back
			}
			break
		}
	}
	w.half = append([]byte(nil), data[whole:]...)
	return len(p), w.add(string(data[:whole]))
}

// Flush writes the word that is held back, and the spaces after it.
func (w *Writer) Flush() error {
	text := strings.ToValidUTF8(string(w.half), string(utf8.RuneError))
	w.half = nil
	var out strings.Builder
	w.put(&out, w.word+text)
	out.WriteString(w.spaces)
	w.word, w.spaces, w.column = "", "", 0
	_, err := io.WriteString(w.to, out.String())
	return err
}

func (w *Writer) add(text string) error {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			w.put(&out, w.word)
			out.WriteString(w.spaces + "\n")
			w.word, w.spaces, w.column = "", "", 0
		case r == ' ' || r == '\t':
			w.put(&out, w.word)
			w.word = ""
			w.spaces += string(r)
		case unicode.IsControl(r):
			w.word += string(shown(r))
		default:
			w.word += string(r)
		}
	}
	// Scripts without spaces may be broken between any two wide characters. The last one is held back: more code points may belong to it.
	if head, last := splitWide(w.word); head != "" {
		w.put(&out, head)
		w.word = last
	}
	if len(w.word) > longest {
		w.put(&out, w.word)
		w.word = ""
	}
	_, err := io.WriteString(w.to, out.String())
	return err
}

// shown is the picture of a control character.
func shown(r rune) rune {
	if r < ' ' {
		return '␀' + r
	}
	return unicode.ReplacementChar
}

// put writes a word, or wide characters one by one, after the spaces before it.
func (w *Writer) put(out *strings.Builder, word string) {
	for word != "" {
		head, rest := leading(word)
		w.place(out, head)
		word = rest
	}
}

// place writes a word that is not broken, on this line where it fits and else on the next.
func (w *Writer) place(out *strings.Builder, word string) {
	end := w.column
	for _, r := range w.spaces {
		if end++; r == '\t' {
			end = (end + tab - 1) / tab * tab
		}
	}
	width := displaywidth.String(word)
	if w.width > 0 && w.column > 0 && end+width > w.width {
		out.WriteString("\n")
		w.column = width
	} else {
		out.WriteString(w.spaces)
		w.column = end + width
	}
	w.spaces = ""
	out.WriteString(word)
	if w.width > 0 && w.column > w.width { // the word is longer than a line, and the terminal has broken it
		w.column %= w.width
	}
}

// leading splits off the first wide character, or all before one.
func leading(word string) (head, rest string) {
	end := 0
	for graphemes := displaywidth.StringGraphemes(word); graphemes.Next(); {
		if graphemes.Width() > 1 && end > 0 {
			break
		}
		end += len(graphemes.Value())
		if graphemes.Width() > 1 {
			break
		}
	}
	return word[:end], word[end:]
}

// splitWide splits a word before the last wide character: code points that follow may still belong to that one.
func splitWide(word string) (head, last string) {
	end, begin := 0, 0
	for graphemes := displaywidth.StringGraphemes(word); graphemes.Next(); {
		if graphemes.Width() > 1 {
			end = begin
		}
		begin += len(graphemes.Value())
	}
	return word[:end], word[end:]
}
