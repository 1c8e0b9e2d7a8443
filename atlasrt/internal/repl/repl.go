// Package repl holds a conversation with whoever sits at a terminal: lines, commands, settings, history.
//
// What a model says goes where Answer writes it; everything else goes to Notes. The package knows no model and reads no
// environment.
package repl

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// Lines gives what is entered, a line at a time.
type Lines interface {
	// Line asks with a prompt. pasted says that the line came with others that belong to it. The error is io.EOF at the end of the
	// input, ErrInterrupt where the user wants to leave, ErrDropped where the line is to be forgotten.
	Line(prompt string) (line string, pasted bool, err error)
}

var (
	// ErrInterrupt says that the user pressed Ctrl-C and had entered nothing.
	ErrInterrupt = errors.New("interrupted")
	// ErrDropped says that the user pressed Ctrl-C to forget what was entered.
	ErrDropped = errors.New("the line was dropped")
)

// Prompts: of a question, and of its further lines.
const (
	firstPrompt = ">>> "
	nextPrompt  = "... "
)

// quotes begin and end a text of several lines.
const quotes = `"""`

// Conversation is what was said, and how it goes on.
type Conversation struct {
	Lines    Lines
	Notes    io.Writer
	Settings *Settings
	// Answer writes the answer to the last of the messages and returns it, as much as there is where the user ended it.
	Answer func([]chat.Message) (string, error)

	messages []chat.Message // without the system message
}

// Run asks until the user leaves.
func (c *Conversation) Run() error {
	for {
		question, command, err := c.read()
		switch {
		case errors.Is(err, ErrDropped):
			continue
		case errors.Is(err, io.EOF), errors.Is(err, ErrInterrupt):
			_, err = fmt.Fprintln(c.Notes)
			return err
		case err != nil:
			return err
		case command:
			leave, err := c.command(question)
			if leave || err != nil {
				return err
			}
		case strings.TrimSpace(question) != "":
			if err := c.Ask(question); err != nil {
				fmt.Fprintf(c.Notes, "%v\n", err)
			}
		}
	}
}

// Ask answers one question and keeps both; a question that gets no answer is forgotten.
func (c *Conversation) Ask(question string) error {
	messages := append(c.messages, message("user", question))
	asked := messages
	if system := c.Settings.System(); system != "" {
		asked = append([]chat.Message{message("system", system)}, messages...)
	}
	answer, err := c.Answer(asked)
	if err != nil {
		return err
	}
	c.messages = append(messages, message("assistant", answer))
	return nil
}

func message(role, text string) chat.Message {
	return chat.Message{Role: role, Content: chat.Content{Text: text}}
}

// read gathers a question: a line, lines between quotes, or lines that were pasted together and what follows them.
func (c *Conversation) read() (question string, command bool, err error) {
	line, pasted, err := c.Lines.Line(firstPrompt)
	if err != nil {
		return "", false, err
	}
	begun := strings.TrimLeft(line, " \t")
	if !pasted && strings.HasPrefix(begun, "/") && begun == line {
		return line, true, nil
	}
	quoted := strings.HasPrefix(begun, quotes)
	if quoted {
		line = strings.TrimPrefix(begun, quotes)
	}
	var lines []string
	for {
		if text, closed := strings.CutSuffix(strings.TrimRight(line, " \t"), quotes); quoted && closed {
			return joined(append(lines, text)), false, nil
		}
		lines = append(lines, line)
		if !quoted && !pasted {
			return joined(lines), false, nil
		}
		if line, pasted, err = c.Lines.Line(nextPrompt); err != nil {
			return "", false, err
		}
	}
}

// joined puts lines together; the line ends beside the quotes are no part of the text, nor is the one that sends pasted lines.
func joined(lines []string) string { return strings.Trim(strings.Join(lines, "\n"), "\n") }
