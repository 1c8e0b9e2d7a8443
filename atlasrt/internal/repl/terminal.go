package repl

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/term"
)

// Screen is a terminal: the keys that are pressed, and what is drawn.
type Screen struct {
	Keys io.Reader // the keys, as bytes
	Draw io.Writer // what is drawn, with escape sequences
	// Raw switches the terminal to raw mode, in which every key comes at once, until restore is called. Nil: it is in raw mode.
	Raw func() (restore func() error, err error)
	// Size is how large the terminal is. Nil: 80 by 24.
	Size func() (columns, rows int, err error)
}

// Terminal reads lines that the user can edit, and recalls earlier ones. It implements Lines.
type Terminal struct {
	screen  Screen
	keys    *keys
	history *History
	editor  *term.Terminal
}

// NewTerminal makes a Terminal on a screen.
func NewTerminal(screen Screen, history *History) *Terminal {
	t := &Terminal{screen: screen, keys: &keys{from: screen.Keys}, history: history}
	t.renew()
	return t
}

// renew begins with an empty line.
func (t *Terminal) renew() {
	t.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{t.keys, t.screen.Draw}, "")
	t.editor.History = t.history
}

// Line implements Lines.
func (t *Terminal) Line(prompt string) (line string, pasted bool, err error) {
	if t.screen.Raw != nil {
		restore, failed := t.screen.Raw()
		if failed != nil {
			return "", false, failed
		}
		defer func() {
			if failed := restore(); failed != nil {
				err = errors.Join(err, failed)
			}
		}()
	}
	if t.screen.Size != nil {
		if columns, rows, err := t.screen.Size(); err == nil && columns > 0 && rows > 0 {
			_ = t.editor.SetSize(columns, rows) // an error in drawing comes again below
		}
	}
	t.editor.SetPrompt(prompt)
	t.editor.SetBracketedPasteMode(true)
	defer t.editor.SetBracketedPasteMode(false)
	t.keys.entered, t.keys.interrupted = false, false
	line, err = t.editor.ReadLine()
	switch {
	case errors.Is(err, term.ErrPasteIndicator):
		return line, true, nil
	case err == io.EOF && t.keys.interrupted:
		t.renew() // the editor would keep the cancelled line
		_, _ = io.WriteString(t.screen.Draw, "^C\r\n")
		if t.keys.entered {
			return "", false, ErrDropped
		}
		return "", false, ErrInterrupt
	}
	return line, false, err
}

// keys passes keys on to the editor and looks for Ctrl-C, which the editor reports as the end of the input.
type keys struct {
	from        io.Reader
	entered     bool // other keys came before Ctrl-C
	interrupted bool // Ctrl-C was pressed
}

const ctrlC = 3

func (k *keys) Read(p []byte) (int, error) {
	n, err := k.from.Read(p)
	before, _, interrupted := bytes.Cut(p[:n], []byte{ctrlC})
	k.entered = k.entered || len(before) > 0
	k.interrupted = k.interrupted || interrupted
	return n, err
}
