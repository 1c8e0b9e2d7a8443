// Package repl holds a conversation with a user at a terminal: it reads lines, runs commands, and keeps settings and a history.
//
// The answers of the model go where Answer writes them; everything else goes to Notes. The package knows no model and reads no
// environment variables.
package repl

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
)

// Lines gives what the user enters, a line at a time.
type Lines interface {
	// Line prints a prompt and reads a line. pasted says that it is part of a pasted text, whose further lines follow. The error is io.EOF
	// at the end of the input, ErrInterrupt where the user wants to leave, ErrDropped where the user has cancelled the line.
	Line(prompt string) (line string, pasted bool, err error)
}

var (
	// ErrInterrupt says that the user pressed Ctrl-C on an empty line.
	ErrInterrupt = errors.New("interrupted")
	// ErrDropped says that the user pressed Ctrl-C to cancel a line.
	ErrDropped = errors.New("the line was dropped")
)

// Prompts of the first line of a question, and of its further lines.
const (
	firstPrompt = ">>> "
	nextPrompt  = "... "
)

// quotes begin and end a text of several lines.
const quotes = `"""`

// Conversation is the messages so far, and what it takes to go on.
type Conversation struct {
	Lines    Lines     // for Run; Plain and Ask do without
	Notes    io.Writer // for everything that is no answer
	Settings *Settings // what /set changes
	// Answer writes the answer to the last of the messages and returns it. Where the user stops it, what came so far is returned.
	Answer func([]chat.Message) (chat.Message, error)

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

// Ask answers one question, and adds both to the conversation. Where there is an error the question is not kept.
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
	c.messages = append(messages, answer)
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

// joined puts lines together, without empty lines at the beginning and the end: they come from the quotes, or from the Enter that sends
// pasted lines.
func joined(lines []string) string { return strings.Trim(strings.Join(lines, "\n"), "\n") }
