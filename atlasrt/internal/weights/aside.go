package weights

import (
	"fmt"
	"strings"
)

// Aside is a part of checkpoints that a model does without.
type Aside struct {
	Prefix string // of the names of its tensors
	What   string // it is, and why it is left out
}

// LeftOut says which of these parts a checkpoint has, in one line for each.
func LeftOut(c Checkpoint, asides []Aside) []string {
	var lines []string
	names := c.Unused()
	for _, a := range asides {
		n := 0
		for _, name := range names {
			if strings.HasPrefix(name, a.Prefix) {
				n++
			}
		}
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%d tensors %s… are left out: %s", n, a.Prefix, a.What))
		}
	}
	return lines
}
