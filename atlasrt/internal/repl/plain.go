package repl

import (
	"bufio"
	"fmt"
	"io"
)

// mostLine bounds a line, in bytes.
const mostLine = 1 << 20

// Plain asks each line of a text that does not come from a terminal. There are no commands: a line that begins with a slash is a question.
func (c *Conversation) Plain(text io.Reader) error {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		if err := c.Ask(lines.Text()); err != nil {
			fmt.Fprintf(c.Notes, "atlasrt: %v\n", err)
		}
	}
	return lines.Err()
}
