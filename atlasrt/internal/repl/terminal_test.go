package repl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// typed gives keys in pieces, as a terminal does.
type typed []string

func (k *typed) Read(p []byte) (int, error) {
	if len(*k) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*k)[0])
	if (*k)[0] = (*k)[0][n:]; (*k)[0] == "" {
		*k = (*k)[1:]
	}
	return n, nil
}

func TestTerminal(t *testing.T) {
	const left, up, down = "\x1b[D", "\x1b[A", "\x1b[B"
	const paste, pasted = "\x1b[200~", "\x1b[201~"
	cases := []struct {
		what string
		keys typed
		want string // lines and errors
	}{
		{"a line", typed{"hi\r"}, "hi, EOF"},
		{"two lines in one read", typed{"a\rb\r"}, "a, b, EOF"},
		{"arrows", typed{"ac", left, "b", "\r"}, "abc, EOF"},
		{"backspace", typed{"ab\x7f", "é漢\x7f", "\r"}, "aé, EOF"},
		{"history", typed{"a\r", "b\r", up, up, "\r", up, up, up, down, down, "\r"}, "a, b, a, a, EOF"},
		{"Ctrl-D", typed{"\x04"}, "EOF"},
		{"Ctrl-C", typed{"\x03"}, "interrupted"},
		{"Ctrl-C after text", typed{"ab", "\x03", "c\r"}, "the line was dropped, c, EOF"},
		{"Ctrl-C behind text", typed{"ab\x03", "c\r"}, "the line was dropped, c, EOF"},
		{"Ctrl-C twice", typed{"ab", "\x03", "\x03"}, "the line was dropped, interrupted"},
		{"a pasted line", typed{paste + "x", pasted, "\r"}, "x, EOF"},
		{"pasted lines", typed{paste + "x\ry" + pasted, "z\r"}, "x+, yz, EOF"},
		{"pasted lines to the end", typed{paste + "x\r\ny\r" + pasted, "\r"}, "x+, y+, , EOF"},
	}
	for _, c := range cases {
		raw := 0
		var drawn strings.Builder
		terminal := NewTerminal(Screen{
			Keys: &c.keys, Draw: &drawn,
			Raw:  func() (func() error, error) { raw++; return func() error { raw--; return nil }, nil },
			Size: func() (int, int, error) { return 40, 10, nil },
		}, &History{})
		var got []string
		for range 20 {
			line, pasted, err := terminal.Line("> ")
			if raw != 0 {
				t.Errorf("%s: the terminal was left raw", c.what)
			}
			if err != nil {
				got = append(got, err.Error())
				if errors.Is(err, ErrDropped) {
					continue
				}
				break
			}
			if pasted {
				line += "+"
			}
			got = append(got, line)
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: got %q, want %q (drawn %q)", c.what, got, c.want, drawn.String())
		}
	}
}

// What making a terminal raw and back meets is no line.
func TestTerminalThatFails(t *testing.T) {
	broken := errors.New("no terminal")
	for _, raw := range []func() (func() error, error){
		func() (func() error, error) { return nil, broken },
		func() (func() error, error) { return func() error { return broken }, nil },
	} {
		terminal := NewTerminal(Screen{Keys: strings.NewReader("a\r"), Draw: io.Discard, Raw: raw}, &History{})
		if _, _, err := terminal.Line(""); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
	}
}

func ExampleHistory() {
	h, err := OpenHistory("")
	h.Add("first")
	h.Add("last")
	fmt.Println(h.At(0), h.Len(), err)
	// Output: last 2 <nil>
}
