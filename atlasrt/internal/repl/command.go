package repl

import (
	"fmt"
	"strings"

	"github.com/atlas-inference/atlas/internal/table"
)

const help = `/set             settings, their values and where these come from
/set NAME VALUE  change a setting; "default" as the value takes it back
/clear           forget what was said
/help            this text
/bye             leave; so do Ctrl-D, and Ctrl-C where nothing is entered

Ctrl-C ends an answer, and a second one the program. Text of several lines
stands between """ and """; pasted lines are one question, which Enter sends.
A line that begins with a space is asked even where a / follows.
`

// command runs the command of a line that begins with a slash.
func (c *Conversation) command(line string) (leave bool, err error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/bye", "/exit", "/quit":
		return true, nil
	case "/help", "/?":
		_, err = fmt.Fprint(c.Notes, help)
	case "/clear":
		c.messages = nil
		_, err = fmt.Fprintln(c.Notes, "what was said is forgotten")
	case "/set":
		err = c.set(rest)
	default:
		_, err = fmt.Fprintf(c.Notes, "there is no command %q (/help lists them; begin with a space to ask it)\n", name)
	}
	return false, err
}

// set changes a setting, or shows one or all.
func (c *Conversation) set(text string) error {
	name, value, given := strings.Cut(text, " ")
	if value = strings.TrimSpace(value); given {
		if err := c.Settings.Set(name, value); err != nil {
			_, err = fmt.Fprintln(c.Notes, err)
			return err
		}
	}
	t := table.New("setting", "value", "from")
	for _, s := range c.Settings.List() {
		if name == "" || name == s.Name {
			t.Row(s.Name, s.Value, s.From)
		}
	}
	if t.Len() == 0 {
		_, err := fmt.Fprintln(c.Notes, unknown(name))
		return err
	}
	return t.Print(c.Notes)
}
