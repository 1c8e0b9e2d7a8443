package main

import (
	"errors"
	"io"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/wrap"
)

// screenful shows an answer as it comes. A terminal gets it wrapped, with the thoughts before it dimmed; a file or a pipe gets the
// answer alone.
type screenful struct {
	said chat.Message // all of it

	to       io.Writer
	wrapped  *wrap.Writer // nil: it goes to no terminal
	thinking bool         // thoughts are being shown
}

// Escape sequences around thoughts.
const dim, undim = "\x1b[2m", "\x1b[22m"

// newScreenful shows an answer on a terminal that has so many columns; 0: it is none.
func newScreenful(to io.Writer, width int) *screenful {
	s := &screenful{said: chat.Message{Role: "assistant"}, to: to}
	if width > 0 {
		s.wrapped = wrap.New(to, width)
	}
	return s
}

// show takes the next events.
func (s *screenful) show(events []chat.Event) (err error) {
	for _, e := range events {
		switch {
		case e.Text == "":
		case e.Kind == chat.EventReasoning:
			s.said.Reasoning += e.Text
			if s.wrapped != nil {
				err = errors.Join(err, s.turn(true), s.write(e.Text))
			}
		default:
			s.said.Content.Text += e.Text
			err = errors.Join(err, s.turn(false), s.write(e.Text))
		}
	}
	return err
}

func (s *screenful) write(text string) error {
	to := s.to
	if s.wrapped != nil {
		to = s.wrapped
	}
	_, err := io.WriteString(to, text)
	return err
}

// turn goes over to thoughts, or from them to what follows.
func (s *screenful) turn(thinking bool) error {
	if thinking == s.thinking {
		return nil
	}
	s.thinking = thinking
	mark := dim
	if !thinking {
		mark = undim + "\n\n"
	} else if s.said.Content.Text != "" {
		mark = "\n\n" + dim
	}
	err := s.wrapped.Flush()
	_, printed := io.WriteString(s.to, mark)
	return errors.Join(err, printed)
}

// end is behind the last event.
func (s *screenful) end() (err error) {
	if s.wrapped != nil {
		err = s.wrapped.Flush()
	}
	mark := "\n"
	if s.thinking {
		mark = undim + mark
	}
	_, printed := io.WriteString(s.to, mark)
	return errors.Join(err, printed)
}
